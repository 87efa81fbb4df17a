"""How fast a kernel may publish.

Jupyter Server drops output above 1000 messages/s or 1 MB/s of stream text, both over three
seconds. Dropped output is lost, late output is not: so the kernel stays below.
"""

from __future__ import annotations

import time
from collections.abc import Callable

MESSAGES_PER_SECOND = 800.0
MESSAGE_BURST = 500.0
STREAM_BYTES_PER_SECOND = 550_000.0
STREAM_BYTE_BURST = 1_000_000.0
# Three seconds from a full bucket: 2,900 messages, 2.65 MB and at most one message more.


class Pace:
    """Two token buckets shared by all cells of a kernel; used on the main loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._then = clock()
        self._messages = MESSAGE_BURST
        self._bytes = STREAM_BYTE_BURST

    def delay(self) -> float:
        """Return how long the next message has to wait, in seconds; 0: it may go now."""
        self._refill()
        wait = 0.0
        if self._messages < 1:
            wait = (1 - self._messages) / MESSAGES_PER_SECOND
        if self._bytes < 0:
            wait = max(wait, -self._bytes / STREAM_BYTES_PER_SECOND)
        return wait

    def sent(self, stream_bytes: int = 0) -> None:
        """Count a message; the byte bucket may go below zero, and the next one waits."""
        self._messages -= 1
        self._bytes -= stream_bytes

    def _refill(self) -> None:
        now = self._clock()
        passed, self._then = now - self._then, now
        self._messages = min(MESSAGE_BURST, self._messages + passed * MESSAGES_PER_SECOND)
        self._bytes = min(STREAM_BYTE_BURST, self._bytes + passed * STREAM_BYTES_PER_SECOND)

"""One page of memory that the supervisor and the cell process share.

It carries what must be seen at once, without a message: that the cell noticed an interrupt, which limit
strikes, and what the cell process is doing.
"""

from __future__ import annotations

import mmap
import struct

IDLE, STARTING, RUNNING, ENDING = range(4)
"""What the cell process does: waits; loads for the step; runs user code; saves."""

LIMITS = ("", "cpu", "memory", "wall", "processes", "open_files", "disk")
"""Names of the limits, as ``done.reason`` has them; the index travels on the page."""


class SharedPage:
    """Counters and flags shared over a fork."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, mmap.PAGESIZE)

    def _get(self, index: int) -> int:
        return int(struct.unpack_from("q", self._map, index * 8)[0])

    def _set(self, index: int, value: int) -> None:
        struct.pack_into("q", self._map, index * 8, value)

    @property
    def noticed(self) -> int:
        """How many interrupts reached Python code in the cell process."""
        return self._get(0)

    @noticed.setter
    def noticed(self, value: int) -> None:
        self._set(0, value)

    @property
    def ignoring(self) -> bool:
        """Whether the cell's code chose to ignore interrupts."""
        return bool(self._get(1))

    @ignoring.setter
    def ignoring(self, value: bool) -> None:
        self._set(1, value)

    @property
    def swallowed(self) -> int:
        """How many of our exceptions were raised where Python throws exceptions away."""
        return self._get(4)

    @swallowed.setter
    def swallowed(self, value: int) -> None:
        self._set(4, value)

    @property
    def phase(self) -> int:
        """What the cell process does."""
        return self._get(2)

    @phase.setter
    def phase(self, value: int) -> None:
        self._set(2, value)

    @property
    def limit(self) -> str:
        """Name of the limit that strikes, or nothing."""
        return LIMITS[self._get(3)]

    @limit.setter
    def limit(self, name: str) -> None:
        self._set(3, LIMITS.index(name))

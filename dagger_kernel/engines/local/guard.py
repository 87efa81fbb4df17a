"""The host's own watch over a running room: it trusts nothing inside, not even the supervisor.

The supervisor enforces the limits and says so in good words. A chain may replace the interpreter that
a later supervisor starts with, so the host bounds what reaches it and what stays with it: time, disk and the bytes on the link.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..base import Outcome
from .trees import usage

INTERVAL = 0.25
AFTERWARDS = 120.0
"""Seconds past the wall-clock limit that ending, saving and listing files may take."""
EXACT_EVERY = 5.0
"""Seconds between two counts of a room's files when the disk does not shrink."""
RESERVE_BYTES, RESERVE_SHARE = 256 << 20, 0.05
"""Of the disk: what cells must leave for the log, the smaller of the two."""
OUTPUT_MOST = 64 << 20
FILES_MOST = 192 << 20
FRAME_BYTES = 512
"""What a frame costs beside its content."""
INPUTS_MOST = 8
"""Questions to the user at one time."""
FILE_FRAMES = frozenset(("file", "overflow"))

TEXTS = {
    "wall": "the cell did not end within its wall-clock limit of {wall_seconds:g} s and was ended from outside",
    "disk": "the cell wrote more than its limit of {disk_bytes} bytes (DAGGER_KERNEL_DISK_BYTES)",
    "space": "the cell was ended because the disk is nearly full",
    "output": "the cell sent more displays and text than a notebook can hold",
}
NAMES = {"wall": "WallClockLimitError", "output": "OutputLimitError"}


class Guard:
    """Watches one step. Belongs to one event loop.

    Parameters
    ----------
    upper
        The room's upper directory.
    limits
        Of the step.
    kill
        Ends the room.

    Attributes
    ----------
    reason
        Why the room was ended; empty if it was not.
    """

    def __init__(self, upper: Path, limits: Mapping[str, Any], kill: Callable[[], None]) -> None:
        self._upper, self._kill = upper, kill
        self._limits = {"wall_seconds": 120.0, "disk_bytes": 4 << 30, **limits}
        self._deadline = time.monotonic() + float(self._limits["wall_seconds"]) + AFTERWARDS
        self._output = self._files = 0
        self._output_most = OUTPUT_MOST + 4 * int(limits.get("output_bytes", 0))
        self._files_most = FILES_MOST + int(limits.get("kept_output_bytes", 0))
        self.reason = ""

    def take(self, kind: str, size: int, inputs: int) -> bool:
        """Count a frame; return whether it may pass."""
        if kind in FILE_FRAMES:
            self._files += size + FRAME_BYTES
        else:
            self._output += size + FRAME_BYTES
        over = self._output > self._output_most or self._files > self._files_most
        if over or (kind == "input_request" and inputs >= INPUTS_MOST):
            self.end("output")
        return not self.reason

    async def watch(self) -> None:
        """Look until cancelled, or until the room has to be ended."""
        before = self._free()
        reserve = min(RESERVE_BYTES, int(RESERVE_SHARE * self._size()))
        most = int(self._limits["disk_bytes"])
        exact_at = time.monotonic() + EXACT_EVERY
        while not self.reason:
            await asyncio.sleep(INTERVAL)
            now, free = time.monotonic(), self._free()
            short = before > reserve > free
            if now > self._deadline:
                self.end("wall")
            elif short or before - free > most or now >= exact_at:
                used = await asyncio.to_thread(usage, self._upper, most)
                if used > most:
                    self.end("disk")
                elif short and used > reserve // 2:
                    self.end("space")
                exact_at = time.monotonic() + EXACT_EVERY
                # Others write too: counting must not become the work.
                await asyncio.sleep(5 * (time.monotonic() - now))

    def end(self, reason: str) -> None:
        """End the room."""
        if not self.reason:
            self.reason = reason
            self._kill()

    def error(self) -> dict[str, Any]:
        """Return the error frame that says why."""
        text = TEXTS[self.reason].format(**self._limits)
        name = NAMES.get(self.reason, "DiskLimitError")
        text = f"{text}. Variables are as before this cell."
        return {"type": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}

    def outcome(self) -> Outcome:
        """Return the outcome of the step that was ended."""
        reason = "disk" if self.reason == "space" else self.reason
        state = {"saved": [], "unchanged": 0, "lost": [], "kept": "before"}
        return Outcome(status="limit", reason=reason, exit_code=-9, state=state)

    def _free(self) -> int:
        return self._statvfs(lambda info: info.f_bavail * info.f_frsize)

    def _size(self) -> int:
        return self._statvfs(lambda info: info.f_blocks * info.f_frsize)

    def _statvfs(self, number: Callable[[os.statvfs_result], int]) -> int:
        try:
            return number(os.statvfs(self._upper))
        except OSError:
            return 1 << 62  # the room is gone

"""The cell's standard streams.

Python text goes straight to descriptors 1 and 2, write by write: then it stands in the right place
between what child processes and C code print there, a forked child inherits no unsent text, and
nothing waits for a newline.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import sys
from typing import Any

from .channel import Channel


class OrderedFile(io.FileIO):
    """A descriptor that keeps the order between stdout and stderr.

    The supervisor reads two pipes and cannot tell which was written first; so when the cell changes
    from one stream to the other, it waits until what came before is read.
    """

    last: OrderedFile | None = None
    channel: Channel | None = None

    def write(self, data: Any, /) -> int:
        """Write all bytes, after what the other stream has."""
        previous = OrderedFile.last
        if previous is not self:
            OrderedFile.last = self
            channel = OrderedFile.channel
            if previous is not None and channel is not None and channel.own:
                channel.send_in_order({"type": "sync"})
        view = memoryview(data).cast("B")
        total = len(view)
        while view:
            written = super().write(view)
            view = view[written or 0 :]
        return total


def open_streams(channel: Channel | None) -> None:
    """Make ``sys.stdin``, ``sys.stdout`` and ``sys.stderr`` of descriptors 0, 1 and 2."""
    OrderedFile.channel = channel
    OrderedFile.last = None
    for number, name in ((1, "stdout"), (2, "stderr")):
        raw = OrderedFile(number, "w", closefd=False)
        stream = io.TextIOWrapper(
            raw,
            encoding="utf-8",
            errors="backslashreplace",
            write_through=True,
            newline="\n",
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115

    unbuffer_c()


def unbuffer_c() -> None:
    """Let C code's prints go out as they come: its buffers would be lost with the process, which ends at once."""
    libc = ctypes.CDLL(None)
    with contextlib.suppress(ValueError, AttributeError):
        stdout = ctypes.c_void_p.in_dll(libc, "stdout")
        libc.setvbuf(stdout, None, 2, 0)  # _IONBF


def flush_c() -> None:
    """Write what C code left in buffers of its other files."""
    ctypes.CDLL(None).fflush(None)


def redirect(output: int, errors: int) -> None:
    """Put descriptors in the place of 0 (empty), 1 and 2."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    if empty > 2:
        os.close(empty)
    os.dup2(output, 1)
    os.dup2(errors, 2)


def flush() -> None:
    """Flush what user code may have put in the place of the streams; never raise."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: S112 - whatever user code put there
            continue

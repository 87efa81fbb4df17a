"""Descriptors of the runner in the process of user code: out of the way of those that user code opens.

A number that a variable kept from an earlier cell must be nobody's in a later one: what is read there would
be a file of the runner's, what is closed there would end the cell.
"""

from __future__ import annotations

import fcntl
import os
from typing import Any

LOWEST = 256
"""Number from which the runner's descriptors are taken: above a cell's, below 1024, where `select` ends."""

_open = os.open


def lift(file: int) -> int:
    """Move a descriptor up; where the limit of open files leaves no room there, it stays."""
    if file < 3:
        return file
    try:
        lifted = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    except OSError:
        return file
    os.close(file)
    return lifted


def open_high(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    """Stand in for ``os.open`` in the runner's modules."""
    return lift(_open(path, flags, mode, dir_fd=dir_fd))

"""What overlayfs writes in an upper directory: the marks of deleted and of replaced entries."""

from __future__ import annotations

import os
import stat
from pathlib import Path

OPAQUE = "user.overlay.opaque"
"""Extended attribute of a directory that hides its namesakes below, as the mount option ``userxattr`` has it."""


def is_opaque(directory: str | Path | int) -> bool:
    """Whether a directory of a layer (its path or a descriptor) hides its namesakes below."""
    try:
        return os.getxattr(directory, OPAQUE) == b"y"
    except OSError:
        return False


def mark_opaque(directory: str | Path | int) -> None:
    """Let a directory of a layer (its path or a descriptor) hide its namesakes below."""
    os.setxattr(directory, OPAQUE, b"y")


def is_whiteout(info: os.stat_result) -> bool:
    """Whether a directory entry of a layer marks a deletion (a character device 0:0)."""
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0

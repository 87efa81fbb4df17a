"""Directories that only their owner enters."""

from __future__ import annotations

import os
from pathlib import Path


def make_private_directory(path: Path) -> None:
    """Make a directory 0700, and what is missing above it too; nothing if it is there.

    ``mkdir(parents=True)`` would give the parents the mode of the umask.

    Raises
    ------
    OSError
        It cannot be made, or is no directory.
    """
    missing = [path]
    while not missing[-1].parent.exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not folder.is_dir():
                raise

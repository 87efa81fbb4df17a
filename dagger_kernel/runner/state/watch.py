"""Watches the files that a repeated cell opens; it may read, and change nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_CHANGES = frozenset(
    {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink",
     "shutil.move", "shutil.rmtree"}
)  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_watchers: list[tuple[str, Callable[[str], Any]]] = []
_installed = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watchers or (event != "open" and event not in _CHANGES):
        return
    home, note = _watchers[-1]
    path = arguments[0]
    if not isinstance(path, str | bytes | os.PathLike):
        return
    found = os.path.realpath(os.fsdecode(path))
    inside = os.path.relpath(found, home)
    if inside.startswith("..") or any(
        part.startswith(".") or part == "__pycache__" for part in inside.split(os.sep)
    ):
        return
    if event != "open" or arguments[2] & _WRITES:
        raise PermissionError(f"it would change {inside}")
    note(found)


@contextmanager
def watching(home: str, note: Callable[[str], Any]) -> Iterator[None]:
    """Tell of every file below `home` which is opened, and refuse to change any.

    Parameters
    ----------
    home : str
        The user's directory.
    note : callable
        Called with the real path of each file opened for reading.
    """
    global _installed
    if not _installed:
        # An audit hook stays for the life of the process: it is added once, when first needed.
        sys.addaudithook(_hook)
        _installed = True
    _watchers.append((os.path.realpath(home), note))
    try:
        yield
    finally:
        _watchers.pop()

"""Listing a directory of the user's."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any

from .places import HOME, kind_of


def list_directory(root: str, path: str, *, recursive: bool) -> Any:
    """Return the entries below a directory as ``[path, kind, size, mode, mtime]``, or why not."""
    place = os.path.join(root, HOME)
    for part in path.split("/") if path else ():
        place = os.path.join(place, part)
        try:
            info = os.lstat(place)
        except OSError:
            return {"error": "missing"}
        if stat.S_ISLNK(info.st_mode):
            return {"error": "link"}
        if not stat.S_ISDIR(info.st_mode):
            return {"error": "missing"}
    try:
        return {"entries": list(_entries(place, path, recursive=recursive))}
    except FileNotFoundError:
        return {"error": "missing"}


def _entries(place: str, path: str, *, recursive: bool) -> Iterator[list[Any]]:
    for entry in os.scandir(place):
        info = entry.stat(follow_symlinks=False)
        inner = f"{path}/{entry.name}" if path else entry.name
        kind = kind_of(info.st_mode)
        yield [
            inner,
            kind,
            info.st_size if kind == "file" else 0,
            stat.S_IMODE(info.st_mode),
            info.st_mtime,
        ]
        if recursive and kind == "directory":
            yield from _entries(entry.path, inner, recursive=True)

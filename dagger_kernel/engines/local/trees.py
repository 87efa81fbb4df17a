"""Walking and removing what a sandbox left, whatever its shape: endless depth, closed directories, odd names.

Python's own tools recurse (a thousand directories in each other end them) or build paths (4096 bytes
end them). These work with descriptors, a constant number of them, and never follow a link.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

DEPTH = 200
"""Directories in each other that are looked into: each takes a descriptor."""

NAME_BYTES = 256
"""What a name costs on disk, beside its blocks."""

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(path: Path) -> None:
    """Remove a tree or a file; what cannot be removed is left. Nothing else may write in it meanwhile.

    Directories are moved up to the tree's own top before they are emptied, so depth costs nothing.
    """
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not _unlink(path.name, parent):
            _remove_directory(path.name, parent)
    finally:
        os.close(parent)


def _remove_directory(name: str, parent: int) -> None:
    top = _open_unlocked(name, parent)
    if top is None:
        return
    try:
        waiting = _empty(top, top)
        while waiting:
            moved = waiting.pop()
            directory = _open_unlocked(moved, top)
            if directory is None:
                continue
            try:
                waiting += _empty(directory, top)
            finally:
                os.close(directory)
            with contextlib.suppress(OSError):
                os.rmdir(moved, dir_fd=top)
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=parent)


def _empty(directory: int, top: int) -> list[str]:
    """Unlink a directory's files, move its directories to the top; return their new names there."""
    moved = []
    for name in os.listdir(directory):
        if _unlink(name, directory):
            continue
        with contextlib.suppress(OSError):
            # To change where ".." leads, one must be allowed to write in the directory itself.
            inner = _open_unlocked(name, directory)
            if inner is not None:
                os.close(inner)
            fresh = f"doomed-{secrets.token_hex(8)}"
            os.rename(name, fresh, src_dir_fd=directory, dst_dir_fd=top)
            moved.append(fresh)
    return moved


def _unlink(name: str, directory: int) -> bool:
    """Remove what is no directory; return whether it is gone."""
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _open_unlocked(name: str, directory: int) -> int | None:
    """Open a directory, with all rights for its owner; None if it is none."""
    try:
        place = os.open(
            name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory
        )
    except OSError:
        return None
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o700)
        return os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    finally:
        os.close(place)


def usage(path: Path, most: int | None = None) -> int:
    """Return the bytes that a tree takes on disk; stop counting once there are more than ``most``.

    Works while a sandbox writes in it, from descriptor to descriptor: what vanishes meanwhile is not counted.
    A tree deeper than `DEPTH` counts as ``most + 1``, so that nothing can hide below (without ``most``, what
    lies below is left out).
    """
    total = 0
    stack: list[tuple[int, Iterator[str]]] = []

    def enter(directory: int) -> None:
        stack.append((directory, iter(os.listdir(directory))))

    try:
        enter(os.open(path, DIRECTORY))
        while stack and (most is None or total <= most):
            directory, names = stack[-1]
            name = next(names, None)
            if name is None:
                os.close(stack.pop()[0])
                continue
            with contextlib.suppress(OSError):
                info = os.stat(name, dir_fd=directory, follow_symlinks=False)
                total += info.st_blocks * 512 + NAME_BYTES
                if stat.S_ISDIR(info.st_mode):
                    if len(stack) >= DEPTH:
                        if most is None:
                            continue
                        return most + 1
                    enter(os.open(name, DIRECTORY, dir_fd=directory))
    except OSError:
        pass  # the room is gone
    finally:
        for directory, _ in stack:
            os.close(directory)
    return total

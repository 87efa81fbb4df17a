"""Walking, copying and removing what a sandbox left, whatever its shape: endless depth, closed directories, odd names.

Python's own tools recurse (a thousand directories in each other end them) or build paths (4096 bytes
end them). These work with descriptors, a constant number of them, and never follow a link.
"""

from __future__ import annotations

import contextlib
import errno
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
    """Open a directory that will not be needed again; None if it is none."""
    try:
        return open_unlocked(name, directory, os.R_OK | os.W_OK | os.X_OK)[0]
    except OSError:
        return None


def open_unlocked(
    name: str, directory: int, rights: int = os.R_OK | os.X_OK, kind: int = os.O_DIRECTORY
) -> tuple[int, int | None]:
    """Open what a cell may have closed to its own user; never follows a link.

    Returns a descriptor for reading, and the rights that `close_locked` gives back; None: nothing was changed.
    """
    flags = kind | os.O_NOFOLLOW | os.O_CLOEXEC
    place = os.open(name, flags | os.O_PATH, dir_fd=directory)
    try:
        path, mode = f"/proc/self/fd/{place}", None
        if not os.access(path, rights, effective_ids=True):
            mode = stat.S_IMODE(os.fstat(place).st_mode)
            os.chmod(path, mode | stat.S_IRWXU)
        return os.open(path, kind | os.O_RDONLY | os.O_CLOEXEC), mode
    finally:
        os.close(place)


def close_locked(file: int, mode: int | None) -> None:
    """Close what `open_unlocked` opened, and lock it again, unless a cell changed its rights meanwhile."""
    with contextlib.suppress(OSError):
        if mode is not None and stat.S_IMODE(os.fstat(file).st_mode) == mode | stat.S_IRWXU:
            os.fchmod(file, mode)
    os.close(file)


def usage(path: Path, most: int | None = None) -> int:
    """Return the bytes that a tree takes on disk; stop counting once there are more than ``most``.

    Works while a sandbox writes in it, from descriptor to descriptor: what vanishes meanwhile is not counted.
    A tree deeper than `DEPTH`, or closed again while it is read, counts as ``most + 1``, so that nothing can
    hide there (without ``most``, what lies below is left out).
    """
    total = 0
    stack: list[tuple[int, int | None, Iterator[str]]] = []

    def enter(directory: int, mode: int | None = None) -> None:
        stack.append((directory, mode, _names(directory)))

    try:
        enter(os.open(path, DIRECTORY))
        while stack and (most is None or total <= most):
            directory, mode, names = stack[-1]
            name = next(names, None)
            if name is None:
                stack.pop()
                close_locked(directory, mode)
                continue
            hidden = False
            try:
                info = os.stat(name, dir_fd=directory, follow_symlinks=False)
                total += info.st_blocks * 512 + NAME_BYTES
                if stat.S_ISDIR(info.st_mode):
                    hidden = len(stack) >= DEPTH
                    if not hidden:
                        enter(*open_unlocked(name, directory))
            except PermissionError:
                hidden = True
            except OSError:
                pass  # it vanished
            if hidden and most is not None:
                return most + 1
    except OSError:
        pass  # the room is gone
    finally:
        for directory, mode, _ in stack:
            close_locked(directory, mode)
    return total


def _names(directory: int) -> Iterator[str]:
    yield from os.listdir(directory)


def copy_data(source: int, target: int, size: int) -> None:
    """Copy a file's data to an empty one, not its holes: they may be larger than the disk."""
    os.ftruncate(target, size)
    end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        end = os.lseek(source, start, os.SEEK_HOLE)
        while start < end:
            copied = os.copy_file_range(source, target, end - start, start, start)
            if not copied:
                raise OSError(errno.EIO, "a file shrank while it was copied")
            start += copied

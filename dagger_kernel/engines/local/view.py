"""Reading a state from outside, without mounting it: the union of its layers, top first.

Never follows a link: every path component is opened relative to its directory with ``O_NOFOLLOW``, so
nothing a sandbox made can lead the host out of its layers.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ...errors import SandboxPathError
from ..base import FileInfo
from ..files import split
from .overlay import is_opaque, is_whiteout

HOME = ("home", "sandbox")
DEPTH = 128
"""Directories in each other that a recursive listing enters."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class View:
    """The merged file system of a stack of layer directories.

    Parameters
    ----------
    stack
        Directories holding the parts of a state, top layer first, the base last.
    """

    def __init__(self, stack: list[Path]) -> None:
        self._stack = stack

    def list(self, path: str, *, recursive: bool = False) -> list[FileInfo]:
        """List a directory below ``/home/sandbox``, sorted by path.

        Raises
        ------
        FileNotFoundError, SandboxPathError
        """
        parts = split(path)
        found = list(self._walk(parts, recursive=recursive))
        return sorted(found, key=lambda info: info.path)

    def open(self, path: str) -> int:
        """Open a regular file for reading and return the descriptor.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        SandboxPathError
            It is a link, a directory or a special file, or the path is not relative.
        """
        parts = split(path)
        if not parts:
            raise SandboxPathError(path, "it is a directory")
        full = (*HOME, *parts)
        for root in self._stack:
            name, kind = self._find(root, full, want=path)
            if kind == "absent":
                continue
            if kind == "hidden":
                break
            assert name is not None
            return name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _find(self, root: Path, parts: tuple[str, ...], *, want: str) -> tuple[int | None, str]:
        """Look for a file in one layer: a descriptor, or whether lower layers may have it."""
        hides = False
        directory = os.open(root, _DIRECTORY)
        try:
            for part in parts[:-1]:
                try:
                    deeper = os.open(part, _DIRECTORY, dir_fd=directory)
                except FileNotFoundError:
                    return None, "hidden" if hides else "absent"
                except OSError as error:
                    return None, self._blocked(directory, part, want, error)
                os.close(directory)
                directory = deeper
                hides = hides or is_opaque_fd(directory)
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                info = os.stat(parts[-1], dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                return None, "hidden" if hides else "absent"
            if is_whiteout(info):
                return None, "hidden"
            if not stat.S_ISREG(info.st_mode):
                raise SandboxPathError(want, f"it is a {kind_of(info.st_mode)}")
            handle = os.open(parts[-1], flags, dir_fd=directory)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise SandboxPathError(want, "it is no regular file")
            return handle, "found"
        finally:
            os.close(directory)

    @staticmethod
    def _blocked(directory: int, part: str, want: str, error: OSError) -> str:
        info = os.stat(part, dir_fd=directory, follow_symlinks=False)
        if is_whiteout(info):
            return "hidden"
        if stat.S_ISLNK(info.st_mode):
            raise SandboxPathError(want, "it leads through a link")
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            return "hidden"
        raise SandboxPathError(want, os.strerror(error.errno or 0))

    def _walk(self, start: tuple[str, ...], *, recursive: bool) -> Iterator[FileInfo]:
        waiting = [start]
        while waiting:
            parts = waiting.pop()
            entries = self._entries((*HOME, *parts))
            if entries is None:
                if parts != start:
                    continue
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/".join(parts))
            for name, info in entries.items():
                path = (*parts, name)
                kind = kind_of(info.st_mode)
                yield FileInfo(
                    path="/".join(path),
                    kind=kind if kind in ("file", "directory", "link") else "other",
                    size=info.st_size if kind == "file" else 0,
                    mode=stat.S_IMODE(info.st_mode),
                    mtime=info.st_mtime,
                )
                if recursive and kind == "directory" and len(path) < DEPTH:
                    waiting.append(path)

    def _entries(self, parts: tuple[str, ...]) -> dict[str, os.stat_result] | None:
        """Return what the merged directory holds, None if there is no such directory."""
        entries: dict[str, os.stat_result] = {}
        gone: set[str] = set()
        exists = False
        for root in self._stack:
            directory, hides = self._directory(root, parts)
            if directory is not None:
                exists = True
                try:
                    for name in os.listdir(directory):
                        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
                        if name in entries or name in gone:
                            continue
                        if is_whiteout(info):
                            gone.add(name)
                        else:
                            entries[name] = info
                finally:
                    os.close(directory)
            if hides:
                break
        return entries if exists else None

    @staticmethod
    def _directory(root: Path, parts: tuple[str, ...]) -> tuple[int | None, bool]:
        """Open a directory in one layer; say whether it hides the layers below."""
        hides = False
        directory = os.open(root, _DIRECTORY)
        for part in parts:
            try:
                deeper = os.open(part, _DIRECTORY, dir_fd=directory)
            except FileNotFoundError:
                os.close(directory)
                return None, hides
            except OSError:
                os.close(directory)
                return None, True
            os.close(directory)
            directory = deeper
            hides = hides or is_opaque_fd(directory)
        return directory, hides


def is_opaque_fd(directory: int) -> bool:
    """Whether an open directory of a layer is opaque."""
    return is_opaque(f"/proc/self/fd/{directory}")


def kind_of(mode: int) -> str:
    """Return a word for a file's type."""
    for test, word in (
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "directory"),
        (stat.S_ISLNK, "link"),
        (stat.S_ISFIFO, "named pipe"),
        (stat.S_ISSOCK, "socket"),
    ):
        if test(mode):
            return word
    return "device"

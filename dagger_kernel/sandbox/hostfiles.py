"""Files of this machine that a notebook names.

Its text may be somebody else's: only files below the notebook's own folder are given away, hidden ones
never, and what is opened is what was checked.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import SandboxPathError

MOST = 1000
"""Files taken from one folder."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file below a folder that may be read.

    Attributes
    ----------
    name
        What the sandbox is told: a file's name, or a path that begins with the named folder's.
    root, parts
        Where it is: no part is a link.
    size
        When it was found.
    """

    name: str
    root: str
    parts: tuple[str, ...]
    size: int

    def open(self) -> BinaryIO:
        """Open it, following no link.

        Raises
        ------
        OSError
        """
        directory = open_folder(self.root, self.parts[:-1])
        try:
            return open_file(directory, self.parts[-1])
        finally:
            os.close(directory)


class HostFolders:
    """The folders that a notebook may take files from.

    Parameters
    ----------
    home
        The notebook's own; paths are relative to it.
    others
        What the administrator or the user allows besides.
    closed
        Below which nothing is given away although it is below one of the others: the log's directory.
    """

    def __init__(self, home: Path, others: Sequence[Path] = (), closed: Path | None = None) -> None:
        self._home = os.path.realpath(home)
        folders = [self._home, *(os.path.realpath(Path(path).expanduser()) for path in others)]
        # Started at the top of the file system, a kernel has no folder of its own.
        self._roots = [folder for folder in folders if folder != "/"]
        self._closed = os.path.realpath(closed) if closed else None

    def find(self, path: str) -> list[HostFile]:
        """Return the file that a path names, the files below a folder, or those that a pattern matches.

        Raises
        ------
        SandboxPathError
            It may not be read, is no file or folder, or holds too many files.
        FileNotFoundError
        """
        plain = os.path.join(self._home, os.path.expanduser(path))
        matches = [path]
        if glob.has_magic(path) and not os.path.lexists(plain):
            # Beyond the folder not even names are told.
            if os.path.isabs(os.path.expanduser(path)) or ".." in Path(path).parts:
                raise SandboxPathError(path, "patterns are for the notebook's own folder")
            matches = sorted(glob.glob(path, root_dir=self._home, recursive=True))
            if not matches:
                raise FileNotFoundError(errno.ENOENT, "no file matches", path)
        found: list[HostFile] = []
        for match in matches:
            found += self._find(match, given=path)
            if len(found) > MOST:
                raise SandboxPathError(path, f"it names more than {MOST} files")
        return found

    def _find(self, path: str, *, given: str) -> list[HostFile]:
        root, parts = self._place(path)
        place = os.path.join(root, *parts)
        try:
            info = os.lstat(place)
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", path) from None
        except OSError as error:
            raise SandboxPathError(path, os.strerror(error.errno or 0)) from None
        if stat.S_ISREG(info.st_mode):
            return [HostFile(parts[-1], root, parts, info.st_size)]
        if not stat.S_ISDIR(info.st_mode):
            raise SandboxPathError(path, "it is no regular file")
        if not parts:
            raise SandboxPathError(given, "it is the whole folder; name what you want of it")
        directory = open_folder(root, parts)
        try:
            return [
                HostFile(f"{parts[-1]}/{name}", root, (*parts, *name.split("/")), info.st_size)
                for name, info in files_below(directory)
                if stat.S_ISREG(info.st_mode)
            ]
        finally:
            os.close(directory)

    def _place(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Return the folder that a path is below, links resolved, and the rest of the path."""
        if "\0" in path:
            raise SandboxPathError(path, "it has a NUL byte")
        real = os.path.realpath(os.path.join(self._home, os.path.expanduser(path)))
        if self._closed is not None and is_below(real, self._closed):
            raise SandboxPathError(path, "it belongs to dagger_kernel")
        for root in self._roots:
            if is_below(real, root):
                parts = Path(real).relative_to(root).parts
                if any(part.startswith(".") for part in parts):
                    raise SandboxPathError(path, "hidden files are not given to sandboxes")
                return root, parts
        raise SandboxPathError(
            path,
            "it is not below the notebook's folder (DAGGER_KERNEL_UPLOAD_FOLDERS allows others)",
        )


def is_below(path: str, folder: str) -> bool:
    """Whether a real path is a folder or in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def open_folder(root: str, parts: Sequence[str]) -> int:
    """Return a descriptor of a folder below another one; no part may be a link."""
    directory = os.open(root, _DIRECTORY)
    for part in parts:
        try:
            deeper = os.open(part, _DIRECTORY, dir_fd=directory)
        finally:
            os.close(directory)
        directory = deeper
    return directory


def open_file(directory: int, name: str) -> BinaryIO:
    """Open a regular file in a folder, following no link and waiting for nobody."""
    handle = os.open(name, _FILE, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file", name)
    return os.fdopen(handle, "rb")


def files_below(directory: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is below a folder, but for folders and hidden names: path and status, at most `MOST` + 1.

    Links are told and not followed.
    """
    count = 0
    for folder, folders, names, handle in os.fwalk(".", dir_fd=directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted([*names, *folders]):
            if name.startswith("."):
                continue
            try:
                info = os.stat(name, dir_fd=handle, follow_symlinks=False)
            except OSError:
                continue  # gone meanwhile
            if stat.S_ISDIR(info.st_mode):
                continue
            yield os.path.normpath(os.path.join(folder, name)), info
            count += 1
            if count > MOST:
                return

"""A layer as a tar file and back, with the conventions of OCI image layers.

A deletion is an empty file ``.wh.NAME``, a replaced directory holds ``.wh..wh..opq``.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import tarfile
from pathlib import Path
from typing import BinaryIO

from ..files import split
from .overlay import is_opaque, is_whiteout, mark_opaque

WHITEOUT = ".wh."
OPAQUE_FILE = ".wh..wh..opq"
PLAIN = "DAGGER_KERNEL.plain"
"""PAX header of a file of the user's whose name looks like a deletion."""
EXPANSION = 16
"""How much larger than its archive a layer may be: a sparse file takes no space on the disk, but hours to compress."""


class TooLargeError(Exception):
    """The archive would pass its size limit."""


class OutsideLayerError(tarfile.TarError):
    """A member of an archive would be written outside of the layer, or is a device."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is not written: it is a device, or leads out of the layer")


def pack(layer: Path, max_bytes: int) -> bytes | None:
    """Return the archive of a layer's upper directory, None when it (or what it holds) is larger than allowed."""
    buffer = io.BytesIO()
    try:
        with tarfile.open(
            fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT, compresslevel=1
        ) as tar:
            _pack_directory(tar, os.fspath(layer), "", buffer, max_bytes)
    except (TooLargeError, RecursionError):
        return None
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.EACCES):
            return None  # nested deeper than a path can say, or closed to its own user
        raise
    return buffer.getvalue() if buffer.tell() <= max_bytes else None


def _pack_directory(
    tar: tarfile.TarFile, path: str, name: str, buffer: io.BytesIO, max_bytes: int
) -> None:
    if is_opaque(path):
        tar.addfile(tarfile.TarInfo(os.path.join(name, OPAQUE_FILE)))
    for entry in sorted(os.scandir(path), key=lambda item: item.name):
        inner = os.path.join(name, entry.name)
        info = entry.stat(follow_symlinks=False)
        if is_whiteout(info):
            tar.addfile(tarfile.TarInfo(os.path.join(name, WHITEOUT + entry.name)))
            continue
        if stat.S_ISSOCK(info.st_mode):
            continue  # a socket without its process is nothing
        member = tar.gettarinfo(entry.path, inner)
        member.uid = member.gid = 1000
        member.uname = member.gname = ""
        if entry.name.startswith(WHITEOUT):
            member.pax_headers = {PLAIN: "1"}
        if tar.offset + member.size > EXPANSION * max_bytes:
            raise TooLargeError
        if member.isreg():
            with open(entry.path, "rb", opener=_no_link) as file:
                tar.addfile(member, file)
        else:
            tar.addfile(member)
        if buffer.tell() > max_bytes:
            raise TooLargeError
        if stat.S_ISDIR(info.st_mode):
            _pack_directory(tar, entry.path, inner, buffer, max_bytes)


def unpack(archive: BinaryIO, layer: Path) -> None:
    """Fill an empty upper directory from an archive.

    The archive is data of a sandbox: a name or hard link that leads out of the directory, or through a
    link, is refused.

    Raises
    ------
    OutsideLayerError, OSError
    """
    with tarfile.open(fileobj=archive, mode="r:*") as tar:
        for member in tar:
            directory, _, base = member.name.rpartition("/")
            if base in ("", "."):
                continue  # the layer itself
            place = _inside(layer, directory)
            place.mkdir(parents=True, exist_ok=True)
            plain = PLAIN in member.pax_headers
            if base == OPAQUE_FILE and not plain:
                mark_opaque(place)
            elif base.startswith(WHITEOUT) and not plain:
                target = place / base.removeprefix(WHITEOUT)
                os.mknod(target, stat.S_IFCHR | 0o600, os.makedev(0, 0))
            elif member.issym():
                # Absolute link targets are normal in a sandbox; they are never followed here.
                os.symlink(member.linkname, place / base)
            elif member.isfifo():
                os.mkfifo(place / base, member.mode & 0o777)
            elif member.islnk():
                folder, _, name = member.linkname.rpartition("/")
                os.link(_inside(layer, folder) / name, place / base, follow_symlinks=False)
            else:
                _extract(tar, member, place / base)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Write a directory or a file. By hand: tarfile's filters came with Python 3.11.4."""
    if target.name == ".." or target.is_symlink() or not (member.isdir() or member.isreg()):
        raise OutsideLayerError(member.name)
    content = tar.extractfile(member)
    if content is None:
        target.mkdir(exist_ok=True)
    else:
        with content, open(target, "xb") as file:
            shutil.copyfileobj(content, file, 1 << 20)
    target.chmod(member.mode & 0o1777)
    os.utime(target, (member.mtime, member.mtime))


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _inside(layer: Path, directory: str) -> Path:
    place = layer
    for part in directory.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            raise OutsideLayerError(directory)
        place = place / part
        if place.is_symlink():
            raise OutsideLayerError(directory)
    return place


def put_file(layer: Path, path: str, mode: int, source: BinaryIO) -> None:
    """Write one file below ``home/sandbox`` of an empty upper directory.

    Raises
    ------
    SandboxPathError
        The path leads elsewhere.
    """
    target = layer.joinpath("home/sandbox", *split(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    target.chmod(mode & 0o777)

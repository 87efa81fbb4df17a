"""What comes in over the link: uploads, stored layer differences, skills."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from typing import Any, BinaryIO

from . import places
from .places import HOME, PARTS, SKILLS, clear, inside_parts, make_place, remove

WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
"""Names that stand for what is gone: the conventions of OCI layers."""


def put(root: str, receive: Callable[[], tuple[dict[str, Any], bytes]]) -> None:
    """Write the files that arrive below the user's directory; what stands in their way goes."""
    file: BinaryIO | None = None
    try:
        while True:
            head, body = receive()
            if head["type"] == "put":
                if file is not None:
                    file.close()
                target = make_place(root, f"{HOME}/{head['path']}")
                remove(target)
                handle = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                os.fchown(handle, places.OWNER, places.OWNER)
                os.fchmod(handle, head["mode"] & 0o777)
                file = os.fdopen(handle, "wb")
            elif head["type"] == "data" and file is not None:
                file.write(body)
            else:
                return
    finally:
        if file is not None:
            file.close()


def unpack(root: str, archive: BinaryIO) -> None:
    """Apply a layer difference. Whatever it names outside of `PARTS` is left alone."""
    times: list[tuple[str, float]] = []
    with tarfile.open(fileobj=archive, mode="r:*") as tar:
        for member in tar:
            name = os.path.normpath(member.name.lstrip("/"))
            directory, _, base = name.rpartition("/")
            if not inside_parts(name) or ".." in name.split("/"):
                continue
            if base == OPAQUE:
                clear(make_place(root, f"{directory}/_", keep_owner=True).removesuffix("/_"))
            elif base.startswith(WHITEOUT):
                remove(make_place(root, f"{directory}/{base.removeprefix(WHITEOUT)}"))
            elif name not in PARTS:
                target = make_place(root, name)
                _extract(tar, member, root, target)
                if member.isdir():
                    times.append((target, member.mtime))
    for target, mtime in reversed(times):
        os.utime(target, (mtime, mtime))


def mount(root: str, archive: BinaryIO) -> None:
    """Unpack a skill: folders and files below `SKILLS`, root's."""
    with tarfile.open(fileobj=archive, mode="r:*") as tar:
        for member in tar:
            name = os.path.normpath(member.name)
            if not name.startswith(f"{SKILLS}/") or ".." in name.split("/"):
                continue
            target = make_place(root, name, keep_owner=True)
            if member.isdir():
                os.makedirs(target, exist_ok=True)
            elif member.isreg() and (content := tar.extractfile(member)) is not None:
                remove(target)
                with open(target, "xb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
                os.utime(target, (member.mtime, member.mtime))
            else:
                continue
            os.chmod(target, member.mode & 0o755)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, root: str, target: str) -> None:
    if member.isdir():
        if not (os.path.isdir(target) and not os.path.islink(target)):
            remove(target)
            os.mkdir(target)
        os.chown(target, places.OWNER, places.OWNER)
        os.chmod(target, member.mode & 0o1777)
        return
    remove(target)
    if member.issym():
        os.symlink(member.linkname, target)
    elif member.isfifo():
        os.mkfifo(target)
    elif member.islnk():
        source = os.path.normpath(member.linkname.lstrip("/"))
        if not inside_parts(source) or ".." in source.split("/"):
            return
        os.link(make_place(root, source), target, follow_symlinks=False)
        return
    elif member.isreg():
        content = tar.extractfile(member)
        with open(target, "xb") as file:
            if content is not None:
                shutil.copyfileobj(content, file, 1 << 20)
    else:
        return
    os.lchown(target, places.OWNER, places.OWNER)
    if not member.issym():
        os.chmod(target, member.mode & 0o777)
    os.utime(target, (member.mtime, member.mtime), follow_symlinks=False)

"""A state's difference to another, as an archive."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

from . import places
from .arrivals import WHITEOUT
from .places import PARTS, names_of, same

TOO_LARGE = 3
"""Exit code of ``pack`` when the archive would be larger than allowed."""


EXPANSION = 16
"""How much larger than its archive a difference may be: a sparse file takes no space, but hours to compress."""


class TooLargeError(Exception):
    """The archive would pass its size limit, or what it holds is out of proportion."""


def pack(root: str, old: str, out: BinaryIO, max_bytes: int) -> None:
    """Write this root's difference to another as a gzip-compressed tar file of OCI conventions."""
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT, compresslevel=1) as tar:
        for part in PARTS:
            for gone, name in differences(root, old, part):
                if gone:
                    directory, _, base = name.rpartition("/")
                    tar.addfile(tarfile.TarInfo(f"{directory}/{WHITEOUT}{base}"))
                else:
                    _add(tar, root, name, EXPANSION * max_bytes)
                if out.tell() > max_bytes:
                    raise TooLargeError
    if out.tell() > max_bytes:
        raise TooLargeError


def differences(root: str, old: str, name: str) -> Iterator[tuple[bool, str]]:
    """Yield what a directory has other than its namesake: whether it is gone, and its name.

    A directory comes before what it holds, and only if anything of it changed.
    """
    mine, theirs = names_of(os.path.join(root, name)), names_of(os.path.join(old, name))
    for entry in sorted(theirs.keys() - mine.keys()):
        yield True, f"{name}/{entry}"
    for entry, info in sorted(mine.items()):
        if stat.S_ISSOCK(info.st_mode):
            continue  # a socket without its process is nothing
        inner, there = f"{name}/{entry}", theirs.get(entry)
        equal = there is not None and same(
            os.path.join(root, inner), info, os.path.join(old, inner), there
        )
        if not equal:
            yield False, inner
        if stat.S_ISDIR(info.st_mode):
            below = differences(root, old, inner)
            first = next(below, None)
            if first is not None:
                if equal:
                    yield False, inner
                yield first
                yield from below


def _add(tar: tarfile.TarFile, root: str, name: str, most: int) -> None:
    place = os.path.join(root, name)
    member = tar.gettarinfo(place, name)
    member.uid = member.gid = places.OWNER
    member.uname = member.gname = ""
    if tar.offset + member.size > most:
        raise TooLargeError
    if member.isreg():
        with open(place, "rb") as file:
            tar.addfile(member, file)
    else:
        tar.addfile(member)

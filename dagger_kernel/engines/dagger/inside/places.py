"""Where the sandbox's user can write, and making and removing places there without following links."""

from __future__ import annotations

import filecmp
import os
import shutil
import stat

HOME = "home/sandbox"
PARTS = (HOME, "tmp", "var/tmp", "run/lock", ".dk")
"""All that the sandbox's user can write to and a layer keeps, relative to the root."""

SKILLS = "skills"
"""What the administrator mounted: root's, so that the sandbox's user can only read it."""

OWNER = 1000


def kind_of(mode: int) -> str:
    """Return ``file``, ``directory``, ``link`` or ``other``."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def inside_parts(name: str) -> bool:
    """Whether a path relative to the root is one of `PARTS` or below one."""
    return any(name == part or name.startswith(f"{part}/") for part in PARTS)


def make_place(root: str, name: str, *, keep_owner: bool = False) -> str:
    """Make the directories above a path; what stands in their way (a link, a file) goes."""
    place = root
    parts = name.split("/")
    if ".." in parts:
        raise ValueError(name)
    for part in parts[:-1]:
        place = os.path.join(place, part)
        try:
            if stat.S_ISDIR(os.lstat(place).st_mode):
                continue
            os.unlink(place)
        except FileNotFoundError:
            pass
        os.mkdir(place, 0o755)
        if not keep_owner:
            os.chown(place, OWNER, OWNER)
    return os.path.join(place, parts[-1])


def remove(place: str) -> None:
    """Remove a file or a tree; nothing when there is none."""
    try:
        info = os.lstat(place)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(info.st_mode):
        shutil.rmtree(place)
    else:
        os.unlink(place)


def clear(place: str) -> None:
    """Remove what a directory holds."""
    for name in os.listdir(place):
        remove(os.path.join(place, name))


def names_of(place: str) -> dict[str, os.stat_result]:
    """Return a directory's entries; none when there is no such directory."""
    try:
        with os.scandir(place) as entries:
            return {e.name: e.stat(follow_symlinks=False) for e in entries}
    except OSError:
        return {}


def same(one: str, a: os.stat_result, other: str, b: os.stat_result) -> bool:
    """Whether two entries are equal, directories without what they hold.

    An untouched file of a lower layer has one change time in both roots; a change of any kind gives a new
    one. Only if that differs the contents are compared.
    """
    if (a.st_mode, a.st_uid, a.st_gid) != (b.st_mode, b.st_uid, b.st_gid):
        return False
    if stat.S_ISDIR(a.st_mode):
        return True
    if a.st_size != b.st_size or a.st_mtime_ns != b.st_mtime_ns:
        return False
    if a.st_ctime_ns == b.st_ctime_ns and a.st_ino == b.st_ino:
        return True
    if stat.S_ISLNK(a.st_mode):
        return os.readlink(one) == os.readlink(other)
    return not stat.S_ISREG(a.st_mode) or filecmp.cmp(one, other, shallow=False)

"""One layer instead of hundreds: a state made again on the root."""

from __future__ import annotations

import os
import shutil
import stat

from .places import PARTS, SKILLS, make_place, names_of, remove, same


def mirror(root: str, other: str) -> None:
    """Make this root's parts equal to another's: one layer instead of hundreds."""
    links: dict[tuple[int, int], str] = {}
    for part in (*PARTS, SKILLS):
        if os.path.isdir(os.path.join(other, part)):
            make_place(root, f"{part}/_", keep_owner=True)
            _mirror_directory(os.path.join(root, part), os.path.join(other, part), links)


def _mirror_directory(mine: str, theirs: str, links: dict[tuple[int, int], str]) -> None:
    here, there = names_of(mine), names_of(theirs)
    for name in here.keys() - there.keys():
        remove(os.path.join(mine, name))
    for name, info in there.items():
        target, source = os.path.join(mine, name), os.path.join(theirs, name)
        now = here.get(name)
        if stat.S_ISDIR(info.st_mode):
            if now is None or not stat.S_ISDIR(now.st_mode):
                remove(target)
                os.mkdir(target)
            _mirror_directory(target, source, links)
        elif now is None or not same(target, now, source, info):
            remove(target)
            _copy(source, target, info, links)
    own = os.lstat(theirs)
    if not same(mine, os.lstat(mine), theirs, own) or os.lstat(mine).st_mtime_ns != own.st_mtime_ns:
        os.chown(mine, own.st_uid, own.st_gid)
        shutil.copystat(theirs, mine)


def _copy(
    source: str, target: str, info: os.stat_result, links: dict[tuple[int, int], str]
) -> None:
    identity = (info.st_dev, info.st_ino)
    if info.st_nlink > 1 and identity in links:
        os.link(links[identity], target, follow_symlinks=False)
        return
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISREG(info.st_mode):
        shutil.copyfile(source, target, follow_symlinks=False)
    elif stat.S_ISFIFO(info.st_mode):
        os.mkfifo(target)
    else:
        return
    os.lchown(target, info.st_uid, info.st_gid)
    shutil.copystat(source, target, follow_symlinks=False)
    links[identity] = target

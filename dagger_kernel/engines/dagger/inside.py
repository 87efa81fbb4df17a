"""What runs inside a container besides the runner: list, put files in, pack, unpack and mirror states.

Shipped beside the runner and started as root by the base's own interpreter (``python -I -S``), which the
sandbox's user cannot change; standard library only. It never follows a link that the sandbox made.

    inside.py list PATH [--recursive]      a JSON line on stdout
    inside.py put SOCKET NONCE             files of an upload, from the link
    inside.py unpack SOCKET NONCE          a stored layer difference, from the link
    inside.py mount SOCKET NONCE           a skill's files, from the link
    inside.py pack OLD OUT MAX_BYTES       this root's difference to another, as an archive
    inside.py mirror OTHER                 make this root's parts equal to another's
"""

from __future__ import annotations

import filecmp
import io
import json
import os
import shutil
import socket
import stat
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

HOME = "home/sandbox"
PARTS = (HOME, "tmp", "var/tmp", "run/lock", ".dk")
"""All that the sandbox's user can write to and a layer keeps, relative to the root."""

SKILLS = "skills"
"""What the administrator mounted: root's, so that the sandbox's user can only read it."""

OWNER = 1000
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
TOO_LARGE = 3
"""Exit code of ``pack`` when the archive would be larger than allowed."""
LINK_LOST = 74
CONNECT_SECONDS = 30.0


class TooLargeError(Exception):
    """The archive would pass its size limit."""


# -- list


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


def kind_of(mode: int) -> str:
    """Return ``file``, ``directory``, ``link`` or ``other``."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


# -- put and unpack


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
                os.fchown(handle, OWNER, OWNER)
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
        os.chown(target, OWNER, OWNER)
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
    os.lchown(target, OWNER, OWNER)
    if not member.issym():
        os.chmod(target, member.mode & 0o777)
    os.utime(target, (member.mtime, member.mtime), follow_symlinks=False)


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


# -- pack and mirror


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


def names_of(place: str) -> dict[str, os.stat_result]:
    """Return a directory's entries; none when there is no such directory."""
    try:
        with os.scandir(place) as entries:
            return {e.name: e.stat(follow_symlinks=False) for e in entries}
    except OSError:
        return {}


def pack(root: str, old: str, out: BinaryIO, max_bytes: int) -> None:
    """Write this root's difference to another as a gzip-compressed tar file of OCI conventions."""
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT, compresslevel=1) as tar:
        for part in PARTS:
            for gone, name in differences(root, old, part):
                if gone:
                    directory, _, base = name.rpartition("/")
                    tar.addfile(tarfile.TarInfo(f"{directory}/{WHITEOUT}{base}"))
                else:
                    _add(tar, root, name)
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


def _add(tar: tarfile.TarFile, root: str, name: str) -> None:
    place = os.path.join(root, name)
    member = tar.gettarinfo(place, name)
    member.uid = member.gid = OWNER
    member.uname = member.gname = ""
    if member.isreg():
        with open(place, "rb") as file:
            tar.addfile(member, file)
    else:
        tar.addfile(member)


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


# -- the command line


class Wire:
    """The link, as its other end in the runner sees it, but blocking."""

    def __init__(self, path: str, nonce: str) -> None:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        from dagger_kernel_runner import protocol  # type: ignore[import-not-found] # beside us

        self.protocol: Any = protocol
        self.sock = connect(path)
        self.stream = self.sock.makefile("rb")
        self.send({"type": "hello", "nonce": nonce, "protocol": protocol.PROTOCOL})

    def send(self, head: dict[str, Any]) -> None:
        """Send a frame."""
        self.sock.sendall(self.protocol.encode(head))

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """Return the next frame; the end of the link is an error."""
        head_size, body_size = self.protocol.decode_header(self._exactly(8))
        head = self.protocol.decode_head(self._exactly(head_size))
        return head, self._exactly(body_size)

    def _exactly(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) != size:
            raise ConnectionError
        return data


def connect(path: str) -> socket.socket:
    """Connect to the kernel; like the runner's own start."""
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(path)
        except OSError:
            sock.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return sock


def gather(wire: Wire) -> BinaryIO:
    """Return the archive that arrives."""
    archive = io.BytesIO()
    while True:
        head, body = wire.receive()
        if head["type"] != "data":
            archive.seek(0)
            return archive
        archive.write(body)


def main(arguments: list[str]) -> int:
    """Do what the command line says; return the exit code."""
    command, *rest = arguments
    os.umask(0o022)
    if command == "list":
        found = list_directory("/", rest[0], recursive="--recursive" in rest[1:])
        print(json.dumps(found, separators=(",", ":")))
    elif command == "pack":
        with open(rest[1], "wb") as out:
            try:
                pack("/", rest[0], out, int(rest[2]))
            except TooLargeError:
                return TOO_LARGE
    elif command == "mirror":
        mirror("/", rest[0])
    elif command in ("put", "unpack", "mount"):
        try:
            wire = Wire(rest[0], rest[1])
            if command == "put":
                put("/", wire.receive)
            elif command == "mount":
                mount("/", gather(wire))
            else:
                unpack("/", gather(wire))
            wire.send({"type": "done"})
            wire.sock.settimeout(CONNECT_SECONDS)
            wire.receive()  # "close": what is on its way when a process ends, Dagger drops
        except (OSError, ConnectionError) as error:
            print(f"{command}: {error!r}", file=sys.stderr)
            return LINK_LOST
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

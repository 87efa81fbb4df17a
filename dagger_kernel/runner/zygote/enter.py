"""How a forked child of the zygote becomes a room: namespaces, mounts, then no privileges."""

from __future__ import annotations

import array
import base64
import contextlib
import fcntl
import os
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

from . import syscalls as sc

LAYERS = "/L"
"""Where the container sees the layers of every sandbox; a room detaches it."""

BASE = "/B"
"""Where the container sees its base."""

ROOT = "/room"
"""Where a room mounts its state before binding the parts into place."""

PARTS = {"home/sandbox": "/home/sandbox", "tmp": "/tmp", ".dk": "/.dk", "skills": "/skills"}  # noqa: S108
"""Parts of a state, and where the room sees them."""

READ_ONLY = frozenset(("skills",))

UID = 1000

OOM_SCORE = 800
"""Out of memory, the kernel ends cells before it ends notebook servers and databases."""

RESERVED_PIDS = 512
"""Numbers beyond those of the cell: the kernel hands out those below 300 only once."""

PROC_KEPT = frozenset((
    "cgroups", "cpuinfo", "devices", "filesystems", "loadavg", "meminfo", "mounts", "net", "self",
    "stat", "swaps", "sys", "sysvipc", "thread-self", "uptime", "version", "vmstat",
))  # fmt: skip
"""What of /proc a room sees beside its processes: all that programs ask for, nothing that describes the
machine's devices, keys, locks, kernel addresses or command line."""

PROXY_PORT = 3128
"""Where the room's programs find the proxy, on the room's own loopback."""


def enter(request: Mapping[str, Any], announce: Callable[[socket.socket], None]) -> None:
    """Turn this process (pid 1 of a new pid namespace) into a room.

    Parameters
    ----------
    request
        ``lowers`` (layer directories below `LAYERS`, top first), ``upper`` and
        ``work`` (below `LAYERS`), ``network`` (``none``, ``proxy`` or ``host``), ``shm_bytes`` (size of
        /dev/shm), ``processes`` (how many a cell may have), ``seccomp`` (a BPF program in base64, or nothing).
    announce
        Takes the room's listening socket, for the proxy outside to accept on.

    Raises
    ------
    OSError
        A namespace or mount was refused; the message names it.
    """
    flags = sc.CLONE_NEWNS | sc.CLONE_NEWIPC | sc.CLONE_NEWUTS | sc.CLONE_NEWCGROUP
    if request["network"] != "host":
        flags |= sc.CLONE_NEWNET
    sc.unshare(flags)
    if request["network"] != "host":
        _loopback_up()
    if request["network"] == "proxy":
        # Made here, inside the room's network namespace; accepted on outside of it.
        with socket.create_server(("127.0.0.1", PROXY_PORT), backlog=128) as listener:
            announce(listener)
    sc.sethostname("sandbox")
    sc.mount(None, "/", None, sc.MS_REC | sc.MS_PRIVATE)
    _mount_state(request)
    _mount_kernel_filesystems(int(request["shm_bytes"]))
    for hidden in (LAYERS, BASE):
        sc.umount(hidden)
    for scratch in ("/", "/dev"):
        # bubblewrap's own tmpfs: what a cell wrote there would be lost and held in memory.
        sc.mount(None, scratch, None, sc.MS_BIND | sc.MS_REMOUNT | sc.MS_RDONLY | sc.MS_NOSUID)
    writable = _detached_proc()
    try:
        _limit_processes(writable, int(request["processes"]))
        _narrow_proc()
        _become_user(writable)
    finally:
        os.close(writable)
    if request["seccomp"]:
        sc.install_filter(base64.b64decode(request["seccomp"]))


def lend_home() -> None:
    """Make the zygote's home writable, in memory: what is written there is for nobody.

    Libraries look when they are imported: matplotlib would take a directory that no room has, for good, and
    gather the fonts again.
    """
    upper, work = "/tmp/home/upper", "/tmp/home/work"  # noqa: S108 - of the zygote alone
    home = PARTS["home/sandbox"]
    with contextlib.suppress(OSError):
        for place in (upper, work):
            os.makedirs(place)
        options = f"lowerdir={BASE}/home/sandbox,upperdir={upper},workdir={work},userxattr"
        sc.mount("overlay", home, "overlay", sc.MS_NOSUID | sc.MS_NODEV, options)
        os.chdir(home)


def _mount_state(request: Mapping[str, Any]) -> None:
    lowers = [f"{LAYERS}/{name}" for name in request["lowers"]]
    lowers.append(BASE)
    options = (
        f"lowerdir={':'.join(lowers)},upperdir={LAYERS}/{request['upper']},"
        f"workdir={LAYERS}/{request['work']},userxattr,volatile"
    )
    nosuid = sc.MS_NOSUID | sc.MS_NODEV
    sc.mount("overlay", ROOT, "overlay", nosuid, options)
    for part, place in PARTS.items():
        sc.mount(f"{ROOT}/{part}", place, None, sc.MS_BIND)
        flags = nosuid | (sc.MS_RDONLY if part in READ_ONLY else 0)
        sc.mount(None, place, None, sc.MS_BIND | sc.MS_REMOUNT | flags)
    sc.umount(ROOT)


def _mount_kernel_filesystems(shm_bytes: int) -> None:
    safe = sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC
    sc.mount("proc", "/proc", "proc", safe)
    # Its files are memory that belongs to no process, so its size is part of the memory limit.
    options = f"mode=1777,size={shm_bytes},nr_inodes=65536"
    sc.mount("tmpfs", "/dev/shm", "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, options)  # noqa: S108
    sc.mount(
        "devpts",
        "/dev/pts",
        "devpts",
        sc.MS_NOSUID | sc.MS_NOEXEC,
        "newinstance,ptmxmode=0666,mode=620",
    )


def _detached_proc() -> int:
    """Return a descriptor of a proc file system that is mounted nowhere (any more)."""
    sc.mount("proc", ROOT, "proc", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC)
    try:
        return os.open(ROOT, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        sc.umount(ROOT)


def _limit_processes(proc: int, processes: int) -> None:
    """Bound the numbers of this pid namespace: root's processes heed no ``RLIMIT_NPROC``.

    Until Linux 6.14 the number is the whole machine's, which is not ours to change.
    """
    major, minor = (int(part) for part in os.uname().release.split(".")[:2])
    if (major, minor) < (6, 14):
        return
    file = os.open("sys/kernel/pid_max", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
    try:
        os.write(file, str(RESERVED_PIDS + 2 * processes).encode("ascii"))
    finally:
        os.close(file)


def _narrow_proc() -> None:
    """Make /proc/sys read-only and cover what describes the machine.

    Where root runs the kernel, the room's user is the machine's root without capabilities. Root's plain file
    permissions would be enough to write ``core_pattern`` or ``sysrq-trigger``.
    """
    flags = sc.MS_BIND | sc.MS_REMOUNT | sc.MS_RDONLY | sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC
    sc.mount("/proc/sys", "/proc/sys", None, sc.MS_BIND)
    sc.mount(None, "/proc/sys", None, flags)
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name in PROC_KEPT or entry.name.isdigit():
                continue
            # The empty directory is on the root that is read-only by now.
            cover = ROOT if entry.is_dir(follow_symlinks=False) else "/dev/null"
            sc.mount(cover, entry.path, None, sc.MS_BIND)


def _become_user(proc: int) -> None:
    # The mounts above belong to the outer user namespace; inside this inner one
    # nothing can undo them, and uid 1000 is all there is.
    sc.unshare(sc.CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{UID} 0 1"), ("gid_map", f"{UID} 0 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    for limit in ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time"):
        name = f"sys/user/max_{limit}_namespaces"
        file_number = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
        try:
            os.write(file_number, b"0")
        finally:
            os.close(file_number)
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write(str(OOM_SCORE))
    sc.drop_capabilities()
    sc.prctl(sc.PR_SET_DUMPABLE, 1)


def _loopback_up() -> None:
    siocgifflags, siocsifflags, iff_up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = array.array("B", struct.pack("16sh22x", b"lo", 0))
        fcntl.ioctl(probe, siocgifflags, request)
        (flags,) = struct.unpack_from("h", request, 16)
        fcntl.ioctl(probe, siocsifflags, struct.pack("16sh22x", b"lo", flags | iff_up))

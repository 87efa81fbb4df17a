"""The system calls that a room refuses, as a BPF program built here and installed by the room.

Namespaces, missing capabilities and ``no_new_privs`` already forbid most of what stands here. The filter
takes the code behind it out of reach: a fault in the kernel's mount, io_uring or bpf code is of no use to
a cell that cannot call it. It is made with libseccomp (through pyseccomp) on the host, because the
library is no part of a base; without it, rooms run unfiltered and `missing` says why.

Allowed on purpose: ``ptrace`` and ``process_vm_*`` (debuggers and profilers of a cell's own processes; the
supervisor cannot be traced, see `dagger_kernel.runner.entry`), ``personality`` (debuggers again: it
weakens nobody but its caller).
"""

from __future__ import annotations

import errno
import functools
import os
from typing import Any

NAMESPACE_FLAGS = 0x7E020080
"""``CLONE_NEW*``: time, mount, cgroup, uts, ipc, user, pid, network."""

REFUSED = (
    # Mounts and roots.
    "mount", "umount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick",
    "move_mount", "open_tree", "open_tree_attr", "mount_setattr", "statmount", "listmount",
    # Namespaces.
    "unshare", "setns",
    # The kernel itself: modules, programs, its memory, its log, other kernels.
    "init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms", "query_module",
    "bpf", "perf_event_open", "kexec_load", "kexec_file_load", "reboot", "syslog", "acct", "_sysctl",
    "lookup_dcookie", "nfsservctl", "sysfs", "uselib", "swapon", "swapoff", "quotactl", "quotactl_fd",
    "iopl", "ioperm", "vm86", "vm86old", "vhangup", "kcmp",
    # Means of many exploits, of little use to cells.
    "userfaultfd", "add_key", "request_key", "keyctl", "fanotify_init",
    # Files by handle escape mounts.
    "open_by_handle_at", "name_to_handle_at",
    # The machine's clock and name.
    "settimeofday", "stime", "clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64",
    "sethostname", "setdomainname",
)  # fmt: skip
"""Refused with EPERM."""

ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_secret", "clone3")
"""Answered with ENOSYS: their callers then use the older way. ``clone3`` hides its flags from filters."""

FAMILIES = (1, 2, 10, 16)
"""Socket families that stay: unix, inet, inet6, netlink (its routing protocol only)."""

LAST_FAMILY, LAST_NETLINK = 64, 32
LOW_WORD = 0xFFFFFFFF
"""The kernel reads 32 bits of these arguments; a program may set the others."""

TIOCSTI, TIOCLINUX = 0x5412, 0x541C

SUPERVISOR = 1
"""Its process number: the room's init has the cell's user, who could lower its limits and priority."""
OTHERS = (
    ("prlimit64", 0), ("sched_setaffinity", 0), ("sched_setscheduler", 0), ("sched_setparam", 0),
    ("sched_setattr", 0), ("setpriority", 1), ("ioprio_set", 1),
)  # fmt: skip
"""Calls that change a process, and which argument names it."""
PRIO_USER = 2

REMEDY = "Install libseccomp (Debian: libseccomp2, Fedora: libseccomp) and the package pyseccomp."


@functools.cache
def program() -> bytes:
    """Return the filter for this machine's architecture; empty when it cannot be built."""
    return _build()[0]


def missing() -> str:
    """Return why there is no filter; empty if there is one."""
    return _build()[1]


@functools.cache
def _build() -> tuple[bytes, str]:
    try:
        import pyseccomp as library
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        return b"", f"rooms run without a seccomp filter ({error})"
    try:
        return _export(_rules(library)), ""
    except (OSError, ValueError, RuntimeError) as error:
        return b"", f"rooms run without a seccomp filter (libseccomp: {error})"


def _rules(library: Any) -> Any:
    refuse, absent = library.ERRNO(errno.EPERM), library.ERRNO(errno.ENOSYS)
    made = library.SyscallFilter(library.ALLOW)
    # Calls of another architecture (32-bit, x32) would pass by the numbers below.
    made.set_attr(library.Attr.ACT_BADARCH, absent)

    def add(action: int, name: str, *conditions: Any) -> None:
        try:
            made.add_rule(action, name, *conditions)
        except (OSError, ValueError):
            pass  # this architecture or this libseccomp does not know the call

    def low(index: int, value: int) -> Any:
        return library.Arg(index, library.MASKED_EQ, LOW_WORD, value)

    for name in REFUSED:
        add(refuse, name)
    for name in ABSENT:
        add(absent, name)
    for bit in range(32):
        flag = 1 << bit
        if flag & NAMESPACE_FLAGS:
            add(refuse, "clone", library.Arg(0, library.MASKED_EQ, flag, flag))
    unsupported = library.ERRNO(errno.EAFNOSUPPORT)
    for family in range(LAST_FAMILY):
        if family not in FAMILIES:
            add(unsupported, "socket", low(0, family))
    for protocol in range(1, LAST_NETLINK):
        add(unsupported, "socket", low(0, 16), low(2, protocol))
    for request in (TIOCSTI, TIOCLINUX):
        add(refuse, "ioctl", low(1, request))
    for name, index in OTHERS:
        add(refuse, name, low(index, SUPERVISOR))
    add(refuse, "setpriority", low(0, PRIO_USER))
    return made


def _export(made: Any) -> bytes:
    file = os.memfd_create("seccomp")
    with os.fdopen(file, "r+b") as stream:
        made.export_bpf(stream)
        stream.seek(0)
        return stream.read()

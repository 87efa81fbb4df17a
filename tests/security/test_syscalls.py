"""Dangerous system calls: refused by the filter, whatever else would refuse them too."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from dagger_kernel.engines.local import seccomp

pytestmark = pytest.mark.skipif(bool(seccomp.missing()), reason=seccomp.missing() or "filter")

REFUSED = {
    "mount": "b'tmpfs', b'/tmp', b'tmpfs', 0, None",
    "umount2": "b'/proc', 2",
    "pivot_root": "b'/tmp', b'/tmp'",
    "chroot": "b'/tmp'",
    "open_tree": "-100, b'/usr', 1",
    "move_mount": "-1, b'', -1, b'', 0",
    "fsopen": "b'tmpfs', 0",
    "mount_setattr": "-100, b'/usr', 0, None, 0",
    "unshare": "0x00020000",
    "setns": "0, 0",
    "bpf": "0, None, 0",
    "perf_event_open": "None, 0, -1, -1, 0",
    "userfaultfd": "1",
    "keyctl": "0, -3, 0",
    "add_key": "b'user', b'x', b'y', 1, -3",
    "request_key": "b'user', b'x', None, -3",
    "kexec_load": "0, 0, None, 0",
    "kexec_file_load": "-1, -1, 0, None, 0",
    "init_module": "None, 0, b''",
    "finit_module": "-1, b'', 0",
    "delete_module": "b'x', 0",
    "open_by_handle_at": "-100, None, 0",
    "name_to_handle_at": "-100, b'/', None, None, 0",
    "quotactl": "0, None, 0, None",
    "acct": "None",
    "swapon": "b'/tmp/x', 0",
    "reboot": "0, 0, 0, None",
    "syslog": "10, None, 0",
    "kcmp": "1, 1, 0, 0, 0",
    "fanotify_init": "0, 0",
    "sethostname": "b'x', 1",
}
ABSENT = {"io_uring_setup": "8, None", "clone3": "None, 0", "memfd_secret": "0"}
NAMESPACES = {
    "user": 0x10000000, "mount": 0x00020000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x08000000,
    "uts": 0x04000000, "cgroup": 0x02000000,
}  # fmt: skip


def test_refused_calls(attacker, subtests):
    outcomes = eval(
        attacker("[" + ", ".join(f"call('{n}', {a})" for n, a in REFUSED.items()) + "]")
    )
    for name, outcome in zip(REFUSED, outcomes, strict=True):
        with subtests.test(name):
            assert outcome == "EPERM"


@pytest.mark.parametrize("name", ABSENT)
def test_calls_that_do_not_exist_here(attacker, name):
    assert attacker(f"call('{name}', {ABSENT[name]})") == "ENOSYS"


@pytest.mark.parametrize("name", NAMESPACES)
def test_no_new_namespace(attacker, name):
    flag = NAMESPACES[name]
    assert (
        eval(attacker(f"[call('unshare', {flag}), call('clone', {flag} | 17, 0, 0, 0, 0)]"))
        == ["EPERM"] * 2
    )


@pytest.mark.parametrize(
    ("family", "kind", "protocol"),
    [
        (17, 3, 768),
        (40, 1, 0),
        (38, 5, 0),
        (16, 3, 2),
        (16, 3, 15),
        (16, 3, 12),
        (31, 3, 1),
        (29, 3, 1),
    ],
    ids=[
        "packet",
        "vsock",
        "alg",
        "netlink-usersock",
        "netlink-uevent",
        "netlink-netfilter",
        "bluetooth",
        "can",
    ],
)
def test_socket_families_that_do_not_exist_here(attacker, family, kind, protocol):
    assert attacker(f"call('socket', {family}, {kind}, {protocol})") == "EAFNOSUPPORT"


def test_high_bits_of_arguments_hide_nothing(attacker):
    assert attacker("call('socket', (1 << 32) | 17, 3, 768)") == "EAFNOSUPPORT"
    assert attacker("call('ioctl', 1, (1 << 32) | 0x5412, b'x')") == "EPERM"


def test_no_keys_are_pushed_into_a_terminal(attacker):
    before = "master, slave = os.openpty()"
    assert attacker("call('ioctl', slave, 0x5412, b'x')", before) == "EPERM"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="32-bit calls are x86's")
def test_calls_by_the_32_bit_door(attacker):
    """int 0x80 with getpid: another architecture's numbers must not pass by ours."""
    before = (
        "import mmap\n"
        "code = bytes.fromhex('b814000000cd80c3')\n"  # mov eax, 20; int 0x80; ret
        "page = mmap.mmap(-1, 4096, prot=7); page.write(code)\n"
        "enter = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))"
    )
    assert attacker("enter()", before) == "-38"  # ENOSYS


WORKS = {
    "threads and processes": "import multiprocessing as m\nwith m.get_context('spawn').Pool(2) as p: print(p.map(abs, [-1]))",
    "asyncio": "import asyncio, sys\nprint((await (await asyncio.create_subprocess_exec('true')).wait()))",
    "numpy": "import numpy as np; print((np.ones((300, 300)) @ np.ones((300, 300)))[0, 0])",
    "pandas and matplotlib": "import pandas as pd; ax = pd.DataFrame({'a': [1, 2]}).plot(); print(ax.get_lines()[0].get_ydata())",
    "sqlite": "import sqlite3; c = sqlite3.connect('s.db'); c.execute('pragma journal_mode=wal'); c.execute('create table t(a)'); c.commit(); print(c.execute('select 1').fetchone()); del c",
    "git": "!git init -q g && cd g && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --oneline | wc -l",
    "uv": "!uv --version && uv pip list 2>/dev/null | grep -c numpy",
    "network names": "import socket; print([i[1] for i in socket.if_nameindex()], socket.gethostname())",
    "shared memory": "from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=100); m.close(); m.unlink(); del m; print('ok')",
    "tools": "!ps aux | wc -l; free -m | wc -l; nproc; df -h /tmp | wc -l; uptime | wc -l; getconf PAGESIZE",
    "debugger": "import os, ctypes, time\nchild = os.fork()\nif child == 0:\n    time.sleep(9); os._exit(0)\nlibc = ctypes.CDLL(None)\nprint(libc.ptrace(16, child, 0, 0)); os.waitpid(child, 0); libc.ptrace(8, child, 0, 0); os.kill(child, 9); os.waitpid(child, 0); del libc",
}  # fmt: skip


@pytest.mark.parametrize("what", WORKS)
def test_ordinary_programs_work_as_before(attacker, what):
    done = attacker.run(WORKS[what])
    assert done.error is None, done.error
    assert "".join(done.logs.stdout).strip()


def test_the_filter_says_why_it_is_missing():
    code = (
        "import sys; sys.modules['pyseccomp'] = None\n"
        "from dagger_kernel.engines.local import seccomp\n"
        "assert seccomp.program() == b''; print(seccomp.missing())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "without a seccomp filter" in done.stdout

"""Greed that does not show at a glance, and cells that tell the supervisor what it must not believe."""

from __future__ import annotations

import pytest

from .conftest import printed
from .test_link_attacks import CHANNEL
from .test_resources import LIMITS

LIBC = """
import ctypes, mmap, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = libc.mmap.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
libc.shmdt.argtypes = [ctypes.c_void_p]
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def hide():
    libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
def touch(size):
    block = bytearray(size)
    block[::4096] = b'x' * len(block[::4096])
    return block
def children(count, work):
    for _ in range(count):
        if os.fork() == 0:
            try:
                kept = work()
                time.sleep(60)
            finally:
                os._exit(0)
def page():
    for line in open('/proc/self/maps'):
        place, mode, *_, name, deleted = (line.split() + ['', ''])[:7]
        start, end = (int(x, 16) for x in place.split('-'))
        if mode == 'rw-s' and end - start == 4096 and name == '/dev/zero':
            return start
"""

HUGE = "size = 400 << 30\na = libc.mmap(None, size, 1, 0x4022, -1, 0)\nlibc.madvise(a, size, 15)\n"

UNSEEN = {
    "memory files of who hides": ("hide()\nx = []\nfor _ in range(15):\n    x.append(os.memfd_create('x'))\n    for _ in range(64): os.write(x[-1], b'x' * (1 << 20))\n    time.sleep(0.05)", "memory"),
    "System V segments": ("for n in range(15):\n    a = libc.shmat(libc.shmget(4660 + n, 64 << 20, 0o1666), None, 0)\n    ctypes.memset(a, 1, 64 << 20)\n    libc.shmdt(a)\n    time.sleep(0.05)", "memory"),
    "page tables": (HUGE + "for o in range(0, size, 2 << 20): ctypes.c_char.from_address(a + o).value", "memory"),
    "children that hide": ("def work():\n    hide()\n    return touch(150 << 20)\nchildren(8, work)", "memory"),
    "deleted files": ("x = []\nfor _ in range(10):\n    x.append(open('u', 'wb'))\n    os.unlink('u')\n    for _ in range(60): x[-1].write(b'x' * (1 << 20))\n    x[-1].flush()\n    time.sleep(0.05)", "disk"),
    "deleted files of who hides": ("hide()\nx = []\nfor _ in range(10):\n    x.append(open('u', 'wb'))\n    os.unlink('u')\n    for _ in range(60): x[-1].write(b'x' * (1 << 20))\n    x[-1].flush()\n    time.sleep(0.05)", "disk"),
    "CPU time of children nobody waits for": ("signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n    if (child := os.fork()) == 0:\n        while time.process_time() < 0.7: pass\n        os._exit(0)\n    while os.path.exists(f'/proc/{child}'): time.sleep(0.01)", "cpu"),
    "a limit that the cell says has struck": ("ctypes.c_longlong.from_address(page() + 24).value = 1\nchildren(8, lambda: touch(100 << 20))", "memory"),
    "a limit that does not exist": ("ctypes.c_longlong.from_address(page() + 24).value = 1000\nchildren(8, lambda: touch(100 << 20))", "memory"),
    "an end that the cell says has come": (CHANNEL + "s.send(frame({'type': 'executed', 'status': 'ok', 'answers': []}))\ntime.sleep(0.5)\nchildren(6, lambda: touch(150 << 20))\ntime.sleep(3); os._exit(0)", "memory"),
    "many processes after such an end": (CHANNEL + "s.send(frame({'type': 'executed', 'status': 'ok', 'answers': []}))\ntime.sleep(0.5)\nchildren(20, lambda: None)\ntime.sleep(3); os._exit(0)", "processes"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNSEEN)
def test_what_cannot_be_seen_at_a_glance_counts(sandboxes, what):
    code, reason = UNSEEN[what]
    limits = LIMITS | ({"wall_seconds": 60.0} if reason == "cpu" else {})
    greedy = sandboxes(**limits)
    done = greedy.run(f"{LIBC}\n{code}\ntime.sleep(60)")
    assert done.status == "limit", done.error
    assert greedy._inner._session._tip._results[done.key].reason == reason
    assert printed(greedy.run("print('goes on')")) == "goes on\n"


def test_the_supervisor_cannot_be_starved(attacker):
    outcomes = attacker.each(
        "trying(os.setpriority, os.PRIO_PROCESS, 1, 19)", "trying(os.setpriority, os.PRIO_USER, os.getuid(), 19)",
        "trying(os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0))", "trying(os.sched_setaffinity, 1, [0])",
        "trying(__import__('resource').prlimit, 1, 7, (0, 0))",
    )  # fmt: skip
    assert set(outcomes) == {"EPERM"}
    own = attacker.each(
        "trying(os.nice, 1)",
        "trying(os.sched_setaffinity, 0, os.sched_getaffinity(0))",
        "trying(__import__('resource').prlimit, 0, 7)",
    )
    assert set(own) == {"done"}

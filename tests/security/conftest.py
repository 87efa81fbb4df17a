"""Attackers in a cell, and engines with one defence switched off."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from pathlib import Path

import pytest

from dagger_kernel import Sandbox
from dagger_kernel.engines.local import bases, seccomp

from ..conftest import borrow_base

TOOLS = '''
"""What attacks are made of: a system call's outcome as the name of its error, or "done"."""
import ctypes, errno, os, platform

NUMBERS = {  # x86_64, aarch64
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "io_uring_setup": (425, 425),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "mount_setattr": (442, 442), "clone3": (435, 435), "memfd_secret": (447, 447),
    "quotactl": (179, 60), "acct": (163, 89), "swapon": (167, 224), "reboot": (169, 142), "syslog": (103, 116),
    "kcmp": (312, 272), "fanotify_init": (300, 262), "chroot": (161, 51), "pivot_root": (155, 41),
    "settimeofday": (170, 170) if platform.machine() == "aarch64" else (164, 170), "sethostname": (170, 161),
    "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97), "setns": (308, 268), "clone": (56, 220),
    "ptrace": (101, 117), "socket": (41, 198), "ioctl": (16, 29), "process_vm_readv": (310, 270),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
}

def call(name, *args):
    number = NUMBERS[name][platform.machine() == "aarch64"]
    libc = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    wide = [a if isinstance(a, (bytes, ctypes.Array)) or a is None else ctypes.c_long(a) for a in args]
    result = libc.syscall(ctypes.c_long(number), *wide)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]

def trying(action, *args, **options):
    try:
        action(*args, **options)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return "done"

def reading(path):
    return trying(lambda: open(path, "rb").read(16))

def writing(path):
    return trying(lambda: open(path, "r+b").close())

def making(path):
    return trying(lambda: open(path, "xb").close())
'''


class Attacker:
    """Runs expressions in cells and returns what they were worth."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        sandbox.upload("attack.py", TOOLS.encode())

    def __call__(self, expression, before="pass"):
        """Return ``str`` of an expression; ``before`` runs first."""
        code = f"import sys; sys.path.append('attachments')\nfrom attack import *\n{before}\nprint(({expression}))"
        done = self.sandbox.run(code)
        assert done.error is None, done.error
        return "".join(done.logs.stdout).strip()

    def each(self, *expressions):
        """Return the values of several expressions, by one cell."""
        return eval(self("[" + ", ".join(f"({e})" for e in expressions) + "]"))

    def run(self, code, **options):
        return self.sandbox.run(code, **options)


def printed(done):
    return "".join(done.logs.stdout)


@pytest.fixture(scope="module")
def place(shared_base, tmp_path_factory):
    """A data directory for a module's sandboxes."""
    return borrow_base(shared_base, tmp_path_factory.mktemp("attack") / "dagger_kernel")


@pytest.fixture(scope="module")
def attacker(place):
    with Sandbox(data_dir=str(place)) as sandbox:
        yield Attacker(sandbox)


@pytest.fixture
def weakened(fresh_data_dir, tmp_path, monkeypatch):
    """Open an attacker on an engine whose runner was changed, or whose filter is missing.

    Proves that an attack fails because of the defence, and not because it would fail anyway.
    """
    opened = []

    def open_weakened(*, filtered=True, **changes):
        if not filtered:
            monkeypatch.setattr(seccomp, "program", lambda: b"")
        if changes:
            runner = tmp_path / "runner" / "dagger_kernel_runner"
            shutil.copytree(
                bases.RUNNER_SOURCE, runner, ignore=shutil.ignore_patterns("__pycache__")
            )
            for name, code in changes.items():
                with (runner / f"{name.replace('__', '/')}.py").open("a") as module:
                    module.write(f"\n{code}\n")
            monkeypatch.setattr(bases.Bases, "place_runner", lambda _self: runner.parent)
        sandbox = Sandbox(data_dir=str(fresh_data_dir))
        opened.append(sandbox)
        return Attacker(sandbox)

    yield open_weakened
    for sandbox in opened:
        sandbox.close()


@pytest.fixture
def sandboxes(fresh_data_dir):
    """Open sandboxes on one data directory."""
    opened = []

    def open_one(sandbox_id=None, **settings):
        settings.setdefault("data_dir", str(fresh_data_dir))
        sandbox = Sandbox(sandbox_id, **settings)
        opened.append(sandbox)
        return sandbox

    open_one.data_dir = Path(fresh_data_dir)
    yield open_one
    for sandbox in opened:
        sandbox.close()


def shortened(names, slow):
    """Return parameters, those that only vary a theme marked slow."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in slow else name for name in names]


@contextlib.contextmanager
def watching_command_lines(value):
    """Look at the command line of every process meanwhile; yield a list of whether each showed the value."""
    seen, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.append(value.encode() in path.read_bytes())
                except OSError:
                    continue
            time.sleep(0.02)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        stop.set()
        looking.join()

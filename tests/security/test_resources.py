"""Cells that take everything: each ends within its limit, says why, and the next sandbox does not notice."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from dagger_kernel import Sandbox, errors

from .conftest import printed, shortened

LIMITS = {
    "wall_seconds": 5.0,
    "memory_bytes": 256 << 20,
    "processes": 48,
    "disk_bytes": 64 << 20,
    "open_files": 128,
    "cpu_seconds": 3.0,
}
MEMORY, PROCESSES, TIME, DISK = {"memory"}, {"processes"}, {"wall", "cpu"}, {"disk"}

GREEDY = {
    "fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", PROCESSES | TIME),
    "shell fork bomb": ("import subprocess\nsubprocess.run(['bash', '-c', 'b() { b | b & }; b; wait'])\nimport time; time.sleep(60)", PROCESSES | TIME | {""}),
    "threads": ("import threading, time\nfor _ in range(10000): threading.Thread(target=time.sleep, args=(60,)).start()", PROCESSES),
    "a list": ("x = []\nwhile True: x.append(' ' * 10_000_000)", MEMORY),
    "numpy": ("import numpy as np\nx = []\nwhile True: x.append(np.ones(5_000_000))", MEMORY),
    "many processes": ("import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        x = bytearray(60 << 20); x[::4096] = b'x' * len(x[::4096]); time.sleep(60)\ntime.sleep(60)", MEMORY),
    "shared memory": ("with open('/dev/shm/x', 'wb') as f:\n    while True: f.write(b'x' * (1 << 20))", {"", "memory", "disk"}),
    "one file": ("with open('f', 'wb') as f:\n    while True: f.write(b'x' * (1 << 20))", DISK | {""}),
    "many files": ("n = 0\nwhile True:\n    with open(f'f{n}', 'wb') as f: f.write(b'x' * (4 << 20))\n    n += 1", DISK),
    "output": ("while True: print('x' * 1000)", TIME | {"output"}),
    "a stuck loop": ("while True: pass", TIME),
    "a sleep": ("import time; time.sleep(600)", TIME),
    "who ignores signals": ("import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass", TIME),
    "descriptors": ("import os\nx = []\nwhile True: x.append(os.open('/dev/null', 0))", {"open_files"}),
    "pipes": ("import os\nx = []\nwhile True:\n    x.append(os.pipe()); os.set_blocking(x[-1][1], False)\n    os.write(x[-1][1], b'x' * 65536)", {"open_files"}),
}  # fmt: skip


SLOW_GREEDY = {
    "shell fork bomb",
    "shared memory",
    "one file",
    "a sleep",
    "a list",
    "pipes",
    "output",
}


@pytest.mark.parametrize("what", shortened(GREEDY, SLOW_GREEDY))
def test_greed_ends_within_its_limit(sandboxes, what):
    code, reasons = GREEDY[what]
    neighbour = sandboxes()
    neighbour.run("x = 1")
    greedy = sandboxes(**LIMITS)
    began = time.monotonic()
    done = greedy.run(code)
    took = time.monotonic() - began
    assert took < LIMITS["wall_seconds"] + 40, took
    result = greedy._inner._session._tip._results[done.key]
    assert result.reason in reasons, (result.reason, done.error)
    if result.reason:
        assert done.status == "limit"
        assert done.error is not None
    elif what != "shell fork bomb":
        assert done.status == "error"
    assert printed(neighbour.run("print(x)")) == "1\n"
    assert printed(greedy.run("print('goes on')")) == "goes on\n"


def test_a_neighbour_runs_on_beside_a_bomb(sandboxes):
    import threading

    neighbour, bomb = sandboxes(), sandboxes(**LIMITS)
    neighbour.run("x = 1")
    thread = threading.Thread(target=bomb.run, args=(GREEDY["fork bomb"][0],))
    thread.start()
    times = []
    while thread.is_alive():
        began = time.monotonic()
        assert neighbour.run("print(x)").status == "ok"
        times.append(time.monotonic() - began)
    assert times
    assert max(times) < 20


LEFT_BEHIND = {
    "a child that holds the pipe": "import subprocess\nsubprocess.Popen(['sleep', '600'])\nprint('done')",
    "a daemon": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(600)\n    os._exit(0)\nos.wait(); print('done')",
    "zombies": "import os\nfor _ in range(30):\n    if os.fork() == 0: os._exit(0)\nprint('done')",
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nprint('done')",
    "a daemon that prints for ever": "import subprocess\nsubprocess.Popen(['yes'])\nprint('done')",
}


@pytest.mark.parametrize("what", LEFT_BEHIND)
def test_what_is_left_running_ends_with_its_cell(sandboxes, what):
    sandbox = sandboxes()
    began = time.monotonic()
    done = sandbox.run(LEFT_BEHIND[what])
    assert done.status == "ok"
    assert (
        "done" in printed(done) or "for ever" in what
    )  # it may print more than is shown before that
    assert time.monotonic() - began < 30
    assert (
        int(
            printed(
                sandbox.run(
                    "import os; print(len([p for p in os.listdir('/proc') if p.isdigit()]))"
                )
            )
        )
        <= 3
    )


def test_memory_without_an_owner_counts_too(sandboxes):
    """memfd files belong to no process's address space."""
    code = "import os\nx = []\nfor _ in range(40):\n    f = os.memfd_create('x'); x.append(f)\n    for _ in range(32): os.write(f, b'x' * (1 << 20))\nprint('took 1280 MiB')"
    done = sandboxes(**LIMITS).run(code)
    assert "took" not in printed(done)
    assert done.status == "limit"


def test_many_and_long_names_end(sandboxes):
    sandbox = sandboxes(**LIMITS)
    done = sandbox.run("for n in range(20000): open(f'{n:05d}' + 'x' * 245, 'w').close()")
    assert done.status in ("ok", "limit")
    assert len(done.files) < 500
    assert printed(sandbox.run("print(1)")) == "1\n"


@pytest.fixture
def small_disk(fresh_data_dir, tmp_path):
    """A data directory on a small file system of its own."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", place], capture_output=True
    )
    if done.returncode:
        pytest.skip("mounting needs root")
    for entry in Path(fresh_data_dir).iterdir():
        if entry.is_symlink():
            (place / entry.name).symlink_to(entry.readlink())
        elif entry.is_dir():
            shutil.copytree(entry, place / entry.name)
        else:
            shutil.copy(entry, place)
    place.chmod(0o700)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_is_told_and_loses_nothing(small_disk):
    with (
        Sandbox(data_dir=str(small_disk)) as filler,
        Sandbox(data_dir=str(small_disk)) as neighbour,
    ):
        neighbour.run("x = 1")
        filler.run("y = 2")
        code = "n = 0\nwhile True:\n    with open(f'f{n}', 'wb') as f: f.write(b'x' * (1 << 20))\n    n += 1"
        try:
            done = filler.run(code)
        except errors.StorageFullError:
            pass  # the log had no room for the result either: the step has no effect
        else:
            assert done.status in ("limit", "error")
            assert "disk" in done.error.value or "space" in done.error.value
        assert printed(neighbour.run("print(x)")) == "1\n"
        try:
            assert printed(filler.run("print(y)")) == "2\n"
        except errors.StorageFullError:
            filler.rewind(1)
            assert printed(filler.run("print(y)")) == "2\n"

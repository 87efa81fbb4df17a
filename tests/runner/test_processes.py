"""What still runs when the cell ends is ended, and the user is told."""

from __future__ import annotations

import time
from pathlib import Path


def test_background_children_do_not_hold_the_cell(any_room):
    begun = time.monotonic()
    result = any_room.run(
        "import subprocess\np = subprocess.Popen(['sleep', '40'])\nprint('started')"
    )
    assert time.monotonic() - begun < 20
    assert result.stdout == "started\n"
    assert result.done["killed"] == ["sleep"]
    assert "sleep" in result.stderr


def test_daemonised_children(any_room):
    result = any_room.run(
        "import subprocess\n_ = subprocess.run('nohup sleep 40 >/dev/null 2>&1 & setsid sleep 40 & (sleep 40 &) ; echo launched', shell=True)"
    )
    assert result.stdout == "launched\n"
    # A name is what a process is called when it is killed: it may not have come to its command yet.
    assert len(result.done["killed"]) == 3


def test_bang_ampersand(any_room):
    # The child is bash's own for a moment, before it becomes sleep.
    result = any_room.run("!sleep 30 &\nimport time; time.sleep(1)\n'next'")
    assert result.result == "'next'"
    assert result.done["killed"] == ["sleep"]


def test_children_of_a_killed_cell(any_room):
    result = any_room.run(
        "import os, subprocess\np = subprocess.Popen(['sleep', '40'], start_new_session=True)\n"
        "open('pid', 'w').write(str(p.pid))\nos._exit(1)"
    )
    assert result.exit_code == 0
    try:
        command = Path("/proc", (any_room.home / "pid").read_text(), "cmdline").read_bytes()
    except OSError:
        command = b""
    assert b"sleep" not in command


def test_threads_get_a_moment(any_room):
    result = any_room.run(
        "import threading, time\ndef late():\n    time.sleep(0.2); print('thread')\n"
        "threading.Thread(target=late).start()\nprint('cell')"
    )
    assert result.stdout == "cell\nthread\n"
    result = any_room.run("threading.Thread(target=time.sleep, args=(60,), name='endless').start()")
    assert result.status == "ok"
    assert "endless" in result.stderr


def test_helpers_of_libraries_are_not_mentioned(any_room):
    result = any_room.run(
        "from multiprocessing import shared_memory\nm = shared_memory.SharedMemory(create=True, size=10)\nm.unlink()"
    )
    assert result.done["killed"] == []
    assert result.stderr == "" or "still ran" not in result.stderr


def test_forked_child_that_comes_all_the_way(any_room):
    result = any_room.run(
        "import os, time\nx = 0\nif os.fork():\n    time.sleep(0.3); x = 1\nprint('both', x)"
    )
    assert sorted(result.stdout.splitlines()) == ["both 0", "both 1"]
    assert result.status == "ok"
    assert any_room.run("x").result == "1"

"""Each limit ends the cell with its name, its value and the setting; state is kept where it can be."""

from __future__ import annotations

import pytest

MiB = 1 << 20


def test_cpu(room):
    result = room.run("x = 1\nwhile True: pass", limits={"cpu_seconds": 1})
    assert (result.status, result.done["reason"]) == ("limit", "cpu")
    assert result.error["ename"] == "CPULimitError"
    assert "1 s" in result.error["evalue"]
    assert "DAGGER_KERNEL_CPU_SECONDS" in result.error["evalue"]
    assert room.run("x").result == "1"


def test_cpu_of_children_counts(room):
    result = room.run(
        "x = 1\nimport subprocess\nsubprocess.run(['bash', '-c', 'while :; do :; done'])",
        limits={"cpu_seconds": 1},
    )
    assert (result.status, result.done["reason"]) == ("limit", "cpu")
    assert room.run("x").result == "1"


def test_cpu_of_many_short_children_counts(any_room):
    result = any_room.run(
        "import subprocess\nwhile True: subprocess.run(['bash', '-c', 'for ((i=0; i<20000; i++)); do :; done'])",
        limits={"cpu_seconds": 1.5},
    )
    assert (result.status, result.done["reason"]) == ("limit", "cpu")


def test_cpu_in_c_code(room):
    room.run("x = 0")
    result = room.run("x = 1\nsum(range(10**12))", limits={"cpu_seconds": 1})
    assert (result.status, result.done["reason"]) == ("limit", "cpu")
    assert "as before" in result.error["evalue"]
    assert room.run("x").result == "0"


def test_wall_clock(room):
    result = room.run("x = 1\nimport time\ntime.sleep(60)", limits={"wall_seconds": 1.5})
    assert (result.status, result.done["reason"]) == ("limit", "wall")
    assert "1.5 s" in result.error["evalue"]
    assert room.run("x").result == "1"


def test_wall_clock_in_input_and_ignored(room):
    runner = room.start()
    runner.step("input('? ')", allow_stdin=True, limits={"wall_seconds": 1})
    assert runner.finish().done["reason"] == "wall"
    result = room.run(
        "import time\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException:\n        pass",
        limits={"wall_seconds": 1},
    )
    assert (result.status, result.done["reason"]) == ("limit", "wall")
    assert len(result.of("error")) == 1


def test_swallowed_limit_still_counts(room):
    result = room.run(
        "import time\ntry:\n    time.sleep(60)\nexcept BaseException:\n    x = 'caught'",
        limits={"wall_seconds": 1},
    )
    assert result.status == "limit"
    assert result.error["ename"] == "WallClockLimitError"
    assert room.run("x").result == "'caught'"


def test_one_large_allocation_is_a_memory_error(room):
    result = room.run("x = 1\ny = bytearray(2 << 30)", limits={"memory_bytes": 256 * MiB})
    assert (result.status, result.done["reason"]) == ("limit", "memory")
    assert result.error["ename"] == "MemoryError"
    assert "256 MiB" in result.error["evalue"]
    assert "DAGGER_KERNEL_MEMORY_BYTES" in result.error["evalue"]
    assert room.run("x").result == "1"


def test_numpy_allocation_and_handler(room):
    result = room.run(
        "import numpy as np\ntry:\n    np.ones(200_000_000)\nexcept MemoryError:\n    print('smaller')\nx = np.ones(10).sum()",
        limits={"memory_bytes": 256 * MiB},
    )
    assert (result.status, result.stdout) == ("ok", "smaller\n")


def test_many_small_allocations(room):
    result = room.run(
        "x = []\nwhile True: x.append(bytearray(1000))", limits={"memory_bytes": 128 * MiB}
    )
    assert (result.status, result.done["reason"]) == ("limit", "memory")


def test_memory_of_children(any_room):
    result = any_room.run(
        "x = 1\nimport os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        y = b'x' * (100 << 20); time.sleep(60)\ntime.sleep(60)",
        limits={"memory_bytes": 256 * MiB},
    )
    assert (result.status, result.done["reason"]) == ("limit", "memory")
    assert result.error["ename"] == "MemoryLimitError"
    assert any_room.run("x").result == "1"


def test_idle_forks_do_not_count_as_memory(room):
    result = room.run(
        "data = b'x' * (100 << 20)\nimport os, time\npids = []\nfor _ in range(5):\n    pid = os.fork()\n"
        "    if pid == 0:\n        time.sleep(1); os._exit(0)\n    pids.append(pid)\n"
        "_ = [os.waitpid(pid, 0) for pid in pids]\ndel data",
        limits={"memory_bytes": 256 * MiB},
    )
    assert result.status == "ok"


def test_many_threads_are_no_memory(room):
    result = room.run(
        "import threading\nstop = threading.Event()\nthreads = [threading.Thread(target=stop.wait) for _ in range(100)]\n"
        "[t.start() for t in threads]; stop.set(); [t.join() for t in threads]; len(threads)",
        limits={"memory_bytes": 256 * MiB},
    )
    assert result.result == "100"


def test_process_bomb(any_room):
    result = any_room.run(
        "x = 1\nimport os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(60)\n    time.sleep(0.002)",
        limits={"processes": 40},
    )
    assert (result.status, result.done["reason"]) == ("limit", "processes")
    assert any_room.run("x").result == "1"


def test_open_files(room):
    result = room.run(
        "x = 1\nfiles = [open('/dev/null') for _ in range(500)]", limits={"open_files": 64}
    )
    assert (result.status, result.done["reason"]) == ("limit", "open_files")
    assert "DAGGER_KERNEL_OPEN_FILES" in result.error["evalue"]
    assert room.run("x").result == "1"


def test_large_display_with_no_descriptor_left(room):
    result = room.run(
        "files = []\ntry:\n    while True: files.append(open('/dev/null'))\nexcept OSError:\n    pass\n"
        "display({'text/html': 'h' * 200_000, 'text/plain': ''}, raw=True)\ndel files",
        limits={"open_files": 64},
    )
    assert result.status == "ok"
    assert len(result.of("display")) == 1


def test_file_size(room):
    result = room.run(
        "with open('big', 'wb') as f:\n    f.write(bytes(3 << 20))", limits={"disk_bytes": MiB}
    )
    assert (result.status, result.done["reason"]) == ("limit", "disk")


def test_saved_state_is_not_charged(room):
    room.run("import numpy as np\nbig = np.ones(25_000_000)", limits={"memory_bytes": 512 * MiB})
    result = room.run("big[0], bytearray(180 << 20)[0]", limits={"memory_bytes": 320 * MiB})
    assert result.status == "ok"


@pytest.mark.parametrize(
    "limits", [{}, {"cpu_seconds": 1 << 62, "memory_bytes": 1 << 62, "wall_seconds": 1 << 62}]
)
def test_no_limits(room, limits):
    assert room.run("1 + 1", limits=limits).result == "2"


def test_generations_of_forks(any_room):
    """Processes that multiply; they stop by themselves at 128, as root is above RLIMIT_NPROC."""
    result = any_room.run(
        "x = 1\nimport os, time\nfor _ in range(7):\n    try:\n        os.fork()\n    except OSError:\n        pass\ntime.sleep(30)",
        limits={"processes": 60, "wall_seconds": 20},
    )
    assert (result.status, result.done["reason"]) == ("limit", "processes")
    assert any_room.run("'alive'").result == "'alive'"


@pytest.mark.parametrize(
    ("count", "told"), [(1, ("limit", "memory")), (0, ("error", ""))], ids=["memory", "another"]
)
def test_what_the_operating_system_killed_for_its_memory_is_told_so(
    cold_room, tmp_path, count, told
):
    events = tmp_path / "memory.events"
    events.write_text("oom 0\noom_kill 0\n")
    with events.open("rb") as file:
        runner = cold_room.start(memory_events=file.fileno())
        runner.step(
            f"open({str(events)!r}, 'w').write('oom {count}\\noom_kill {count}\\n')\n"
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
        )
        result = runner.finish()
    assert (result.status, result.done.get("reason") or "") == told

"""Interrupts: user code hears of them, state stays, nothing hangs."""

from __future__ import annotations

import time

import pytest


def interrupted(room, source, *, after="ready", again=False, **more):
    runner = room.start()
    room.count += 1
    runner.step("print('ready', flush=True)\n" + source, execution_count=room.count, **more)
    runner.until_text(after)
    time.sleep(0.1)
    runner.interrupt()
    if again:
        time.sleep(0.3)
        runner.interrupt()
    return runner.finish(20)


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(60)",
        "while True: pass",
        "import subprocess\nsubprocess.run(['sleep', '60'])",
        "!sleep 60",
        "import threading\nthreading.Event().wait()",
        "import asyncio\nawait asyncio.sleep(60)",
        "import multiprocessing as mp\nwith mp.get_context('fork').Pool(2) as p: p.map(__import__('time').sleep, [60, 60])",
    ],
    ids=["sleep", "compute", "subprocess", "bang", "event", "await", "pool"],
)
def test_interrupted_cell_keeps_its_state(room, source):
    result = interrupted(room, f"x = 5\n{source}")
    assert result.status == "interrupted"
    assert result.error["ename"] == "KeyboardInterrupt"
    assert room.run("x").result == "5"


def test_interrupt_while_waiting_for_input(room):
    runner = room.start()
    runner.step("x = 1\ninput('? ')", allow_stdin=True)
    runner.until("input_request")
    runner.interrupt()
    result = runner.finish()
    assert result.status == "interrupted"
    assert result.done["answers"] == []


def test_handlers_and_finally_run(room):
    result = interrupted(
        room,
        "import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('politely')\nfinally:\n    print('finally')",
    )
    assert (result.status, result.stdout) == ("ok", "ready\npolitely\nfinally\n")
    assert result.done["usage"]["interrupts"] == 1


def test_awaiting_code_is_cancelled(room):
    result = interrupted(
        room,
        "import asyncio\ntry:\n    await asyncio.sleep(60)\nfinally:\n    print('cleaned')",
    )
    assert result.stdout == "ready\ncleaned\n"
    assert result.error["ename"] == "KeyboardInterrupt"


def test_own_signal_handler(room):
    result = interrupted(
        room,
        "import signal, time\nseen = []\n"
        "old = signal.signal(signal.SIGINT, lambda *a: seen.append(a[0]))\n"
        "print(old is signal.default_int_handler, callable(signal.getsignal(signal.SIGINT)))\nprint('now', flush=True)\n"
        "while not seen: time.sleep(0.02)\nprint(seen)",
        after="now",
    )
    assert (
        result.stdout == "ready\nTrue True\nnow\n[<Signals.SIGINT: 2>]\n" or "[2]" in result.stdout
    )
    assert result.status == "ok"


def test_c_code_that_does_not_notice_is_ended(any_room):
    any_room.run("base = 3")
    result = interrupted(
        any_room,
        "base = 4\nimport ctypes\nlibc = ctypes.CDLL(None)\nmutex = ctypes.create_string_buffer(128)\n"
        "libc.pthread_mutex_lock(mutex)\nlibc.pthread_mutex_lock(mutex)",
    )
    assert result.status == "interrupted"
    assert result.error["ename"] == "KeyboardInterrupt"
    assert "did not notice" in result.error["evalue"]
    assert any_room.run("base").result == "3"


def test_second_interrupt_kills(any_room):
    result = interrupted(
        any_room,
        "import time\nwhile True:\n    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n        pass",
        again=True,
    )
    assert result.status == "interrupted"
    assert "second interrupt" in result.error["evalue"]


def test_interrupt_in_a_finalizer_is_not_lost(room):
    result = interrupted(
        room,
        "import time\nclass Slow:\n    def __del__(self):\n        time.sleep(0.2)\nfor _ in range(99):\n    Slow()\n    time.sleep(0.2)",
    )
    assert result.status == "interrupted"
    assert result.stderr == ""


def test_interrupt_before_the_step_does_nothing(room):
    runner = room.start()
    runner.until("hello")
    runner.interrupt()
    runner.step("'fine'")
    assert runner.finish().result == "'fine'"


def test_interrupt_right_after_the_step(room):
    runner = room.start()
    runner.step("import time\ntime.sleep(60)")
    runner.interrupt()
    assert runner.finish(20).status == "interrupted"


def test_interrupt_in_the_middle_of_large_displays(room):
    result = interrupted(
        room,
        "data = {'text/plain': 'p', 'text/html': 'h' * 300_000}\nwhile True: display(data, raw=True)",
    )
    assert result.status == "interrupted"
    assert all(len(head["data"]["text/html"]) == 300_000 for head in result.of("display"))


def test_bash_cell_is_interrupted(room):
    runner = room.start()
    runner.step("echo ready; sleep 60", language="bash")
    runner.until_text("ready")
    runner.interrupt()
    result = runner.finish()
    assert (result.status, result.done["exit_code"]) == ("interrupted", 130)

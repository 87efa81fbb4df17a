"""The runner's ends: the first frame, the exit codes, comms, a broken link, the forked way."""

from __future__ import annotations

import time

from dagger_kernel.runner.comms import pack_buffers, unpack_buffers
from dagger_kernel.runner.protocol import EXIT_NO_STEP, PROTOCOL

from .harness import Room


def test_hello_comes_first(any_room):
    runner = any_room.start()
    hello = runner.until("hello")
    assert runner.frames[0][0] is hello
    assert hello["nonce"] == runner.nonce
    assert hello["protocol"] == PROTOCOL
    runner.close()


def test_no_step_leaves_no_layer(any_room):
    runner = any_room.start()
    runner.until("hello")
    runner.send({"type": "close"})
    assert runner.process.wait(20) == EXIT_NO_STEP
    runner = any_room.start()
    runner.until("hello")
    runner.sock.close()
    assert runner.process.wait(20) == EXIT_NO_STEP


def test_link_lost_during_the_step(any_room):
    runner = any_room.start()
    runner.step("import time\nprint('on', flush=True)\ntime.sleep(60)")
    runner.until_text("on")
    runner.sock.close()
    assert runner.process.wait(20) not in (0, EXIT_NO_STEP)


def test_nonsense_on_the_link(room):
    runner = room.start()
    runner.until("hello")
    runner.sock.sendall(b"\xff" * 64)
    assert runner.process.wait(20) == EXIT_NO_STEP


def test_slow_reader_stops_the_cell_not_the_clock(room):
    runner = room.start()
    runner.step(
        "while True: display({'text/plain': '', 'text/html': 'x' * 1_000_000}, raw=True)",
        limits={"wall_seconds": 2},
    )
    time.sleep(4)
    result = runner.finish()
    assert result.done["reason"] == "wall"


def test_both_ways_to_start(any_room):
    assert any_room.run("x = 1\n_").result == "''"
    result = any_room.run("x += 1\nprint(x)\n1 / 0")
    assert result.stdout == "2\n"
    assert result.error["ename"] == "ZeroDivisionError"
    assert any_room.run("x").result == "2"


def test_step_during_the_preload_is_served(tmp_path):
    room = Room(tmp_path, preload="nothing_like_this numpy pandas matplotlib.pyplot")
    result = room.run("import numpy\nint(numpy.ones(3).sum())")
    assert result.result == "3"
    room.close()


def test_sources_printing_nothing_of_ours(room):
    result = room.run("x = 1")
    assert result.order == ["hello", "done"]


def test_comms(any_room):
    runner = any_room.start()
    runner.step(
        "import asyncio, comm\nc = comm.create_comm(target_name='t', data={'a': 1}, buffers=[b'one', b'two'])\ngot = []\n"
        "c.on_msg(lambda m: got.append((m['content']['data'], [bytes(b) for b in m['buffers']])))\n"
        "c.send({'b': 2})\nwhile not got: await asyncio.sleep(0.01)\nprint(got)"
    )
    opened = runner.until("comm")
    assert (opened["msg_type"], opened["content"]["data"]) == ("comm_open", {"a": 1})
    assert unpack_buffers(runner.frames[-1][1], opened["buffers"]) == [b"one", b"two"]
    runner.until("comm")
    runner.send(
        {
            "type": "comm",
            "msg_type": "comm_msg",
            "content": {"comm_id": opened["content"]["comm_id"], "data": {"c": 3}},
            "buffers": 1,
        },
        pack_buffers([b"back"]),
    )
    assert runner.finish().stdout == "[({'c': 3}, [b'back'])]\n"


def test_usage_is_told(room):
    usage = room.run("x = b'x' * (50 << 20)\nfor _ in range(10**6): pass").done["usage"]
    assert usage["wall_seconds"] > 0
    assert usage["memory_bytes"] > 40 << 20
    assert usage["processes"] >= 1

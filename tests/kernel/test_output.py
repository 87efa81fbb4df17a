"""Pacing and joining of a cell's output, on a clock of their own."""

import asyncio

from dagger_kernel.kernel.output import CellOutput
from dagger_kernel.kernel.pacing import MESSAGE_BURST, MESSAGES_PER_SECOND, Pace
from dagger_kernel.kernel.text import clean, human_size, one_line


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def recorder():
    sent = []
    return sent, lambda kind, content, metadata=None, buffers=None: sent.append((kind, content))


def test_the_pace_stays_below_a_servers_limits():
    clock = Clock()
    pace = Pace(clock)
    sent = []
    while clock.now < 6:
        wait = pace.delay()
        if wait:
            clock.now += wait + 1e-9
        else:
            pace.sent()
            sent.append(clock.now)
    for begin in range(4):
        assert sum(begin <= t < begin + 3 for t in sent) <= 3000
    assert len(sent) <= MESSAGE_BURST + 6 * MESSAGES_PER_SECOND + 1


def test_stream_bytes_are_paced():
    clock = Clock()
    pace = Pace(clock)
    pace.sent(3_000_000)
    assert 3 < pace.delay() < 4


async def test_everything_arrives_in_order_however_much():
    sent, send = recorder()
    output = CellOutput(send, Pace())
    for number in range(2000):
        output.publish("display_data", {"n": number})
        output.stream("stdout", "x")
    await output.finish()
    assert [content["n"] for kind, content in sent if kind == "display_data"] == list(range(2000))
    assert "".join(content["text"] for kind, content in sent if kind == "stream") == "x" * 2000


async def test_text_is_joined_and_streams_are_kept_apart():
    sent, send = recorder()
    output = CellOutput(send, Pace())
    output.stream("stdout", "a")
    output.stream("stdout", "b")
    output.stream("stdout", "c")
    output.stream("stderr", "d")
    output.stream("stdout", "e")
    await output.finish()
    assert [tuple(content.values()) for _, content in sent] == [
        ("stdout", "a"), ("stdout", "bc"), ("stderr", "d"), ("stdout", "e"),
    ]  # fmt: skip


async def test_held_text_comes_without_more_output():
    sent, send = recorder()
    output = CellOutput(send, Pace())
    output.stream("stdout", "a")
    output.stream("stdout", "b")
    assert len(sent) == 1
    await asyncio.sleep(0.1)
    assert len(sent) == 2


def test_clean():
    assert clean({"a": ["\ud800", float("nan"), float("inf"), 1, None, True]}) == {
        "a": ["\\ud800", "nan", "inf", 1, None, True]
    }
    assert clean({1: (1, 2)}) == {"1": [1, 2]}
    assert clean("naïve 🎉") == "naïve 🎉"


def test_names_and_sizes():
    assert one_line("a\nb\u202e.txt") == "a\\nb\\u202e.txt"
    assert one_line("café 🎉") == "café 🎉"
    assert [human_size(n) for n in (0, 1023, 1024, 1536, 16 << 20)] == [
        "0 B", "1023 B", "1 KiB", "1.5 KiB", "16 MiB",
    ]  # fmt: skip

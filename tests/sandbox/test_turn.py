"""Whose turn it is: whatever ends the waiting, nothing stays held."""

from __future__ import annotations

import asyncio
import threading

import pytest

from dagger_kernel.log import SandboxLock, Slots
from dagger_kernel.sandbox import InterruptedByUser
from dagger_kernel.sandbox.logbook import Logbook
from dagger_kernel.sandbox.turn import Turn
from dagger_kernel.settings import Settings

SANDBOX = "a" * 32


@pytest.fixture
async def turn(tmp_path):
    settings = Settings.load(data_dir=str(tmp_path))
    logbook = Logbook(settings)
    turn = Turn(settings, logbook, SANDBOX)
    turn.settings, turn.logbook = settings, logbook
    yield turn
    await logbook.close()


class Slow:
    """Makes a blocking call wait, in its thread, until the test has done something meanwhile."""

    def __init__(self, function):
        self._function = function
        self.began, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, *args):
        self.began.set()
        self.may_go_on.wait()
        return self._function(*args)

    async def until_begun(self):
        await asyncio.to_thread(self.began.wait)


def assert_free(settings):
    with SandboxLock(settings, SANDBOX):
        pass
    for _ in range(2):
        with Slots(settings, "local", limits=lambda: (1, 0)).enter() as ticket:
            assert ticket.position() == 0


async def hold(turn):
    async with turn.sandbox(), turn.place("local", lambda text: None):
        pass


async def test_what_was_held_is_free_after_it(turn):
    await hold(turn)
    await turn.logbook.call(lambda: None)
    assert_free(turn.settings)


async def test_an_interrupt_while_the_lock_is_taken_leaves_it_free(turn):
    slow = turn._lock.acquire = Slow(turn._lock.acquire)
    task = asyncio.create_task(hold(turn))
    await slow.until_begun()
    turn.interrupt()
    with pytest.raises(InterruptedByUser):
        await task
    slow.may_go_on.set()
    await turn.logbook.call(lambda: None)
    assert_free(turn.settings)
    await hold(turn)


async def test_a_cancellation_while_a_ticket_is_taken_leaves_no_ticket(turn, monkeypatch):
    slow = Slow(Slots.enter)

    def enter(slots):
        return slow(slots)

    monkeypatch.setattr(Slots, "enter", enter)
    task = asyncio.create_task(hold(turn))
    await slow.until_begun()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    slow.may_go_on.set()
    await turn.logbook.call(lambda: None)
    assert_free(turn.settings)


async def test_a_log_that_was_closed_meanwhile_leaves_nothing_held(turn):
    async with turn.sandbox(), turn.place("local", lambda text: None):
        await turn.logbook.close()
    assert_free(turn.settings)

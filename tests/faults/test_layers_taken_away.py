"""Layers that vanish at the worst moment: under a room that is being opened, that waits, that runs; by us or by ``rm``.

What a room reads from vanished layers is silently older or missing. Nobody may take that for the state.
"""

from __future__ import annotations

import asyncio
import os
import shutil

import pytest

from dagger_kernel.engines.local.collector import LayerCollector
from dagger_kernel.engines.local.layers import LayerStore
from dagger_kernel.engines.local.trees import remove
from dagger_kernel.errors import ReplayError, RoomLostError
from dagger_kernel.sandbox import SandboxSession, run_source
from dagger_kernel.settings import Settings

from .injector import CELL, CHECK, Listener


@pytest.fixture
async def opening(fresh_data_dir):
    opened = []

    async def open_one(sandbox_id=None, **settings):
        found = await SandboxSession.open(
            Settings.load(data_dir=str(fresh_data_dir), **settings), sandbox_id=sandbox_id
        )
        opened.append(found)
        return found

    yield open_one
    for session in opened:
        await session.close()


async def cell(session, number, extra="pass", strike=None):
    return await run_source(session, CELL.format(number=number, extra=extra), Listener(strike))


async def seen(session):
    listener = Listener()
    await run_source(session, CHECK, listener)
    return listener.text.splitlines()


def layers(session):
    root = session.settings.layers_path
    return [root / step.key[:20] for step in session._tip.chain]


def empty(path):
    """As ``rm -rf`` does: the content first, the directory last."""
    shutil.rmtree(path / "fs" / ".dk", ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)


async def waiting(session):
    """Wait until the standby is there."""
    while session._rooms._standby._task is None:
        await asyncio.sleep(0.01)
    return await asyncio.shield(session._rooms._standby._task)


async def test_under_a_waiting_room(opening):
    session = await opening()
    for number in (1, 2):
        await cell(session, number)
    room = await waiting(session)
    assert room.alive
    empty(layers(session)[1])
    assert not room.alive
    await cell(session, 3)
    assert await seen(session) == ["1 2 3", "1 2 3"]


@pytest.mark.parametrize("moment", [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
async def test_under_a_room_that_is_being_opened(opening, moment):
    """The soak's lost variables: its state was read after the deletion, its files were known before."""
    session = await opening()
    for number in (1, 2, 3):
        await cell(session, number)
        await session._rooms._committing
        await asyncio.sleep(moment)
        shutil.rmtree(layers(session)[-1] / "fs" / ".dk", ignore_errors=True)
        await asyncio.sleep(moment)
        empty(layers(session)[-1])
    assert await seen(session) == ["1 2 3", "1 2 3"]


async def test_under_a_running_cell(opening):
    session = await opening()
    await cell(session, 1)
    await waiting(session)
    with pytest.raises(RoomLostError, match="while it ran"):
        await cell(session, 2, "time.sleep(0.2)", lambda: empty(layers(session)[0]))
    assert str((await session.steps())[-1][1].status) == "lost"
    await cell(session, 3)
    assert await seen(session) == ["1 3", "1 3"]


async def test_the_whole_directory_of_layers(opening):
    session = await opening()
    await cell(session, 1)
    await waiting(session)
    remove(
        session.settings.layers_path
    )  # an ordinary user cannot enter overlayfs's work directories
    await cell(session, 2)
    assert await seen(session) == ["1 2", "1 2"]


async def test_a_collection_leaves_the_running_cell_its_ground(opening):
    session, other = await opening(), await opening()
    for number in (1, 2):
        await cell(session, number)
        await cell(other, number)
    await other.close()
    store = LayerStore(session.settings.layers_path)
    for path in store.root.glob("*/layer.json"):
        os.utime(path, (1, 1))

    def collect():
        assert LayerCollector(store).collect().count >= 2  # the other sandbox's

    await cell(session, 3, "time.sleep(0.1); open('log.txt').read()", collect)
    assert await seen(session) == ["1 2 3", "1 2 3"]
    again = await opening(other.id)
    assert await seen(again) == ["1 2", "1 2"]


async def test_a_quota_is_kept_when_a_kernel_ends(opening):
    session = await opening(cache_bytes=200_000)
    for number in range(6):
        await cell(
            session, number, "import os; open(f'f{len(xs)}.bin', 'wb').write(os.urandom(100_000))"
        )
    await session.close()
    collector = LayerCollector(LayerStore(session.settings.layers_path))
    assert collector.size() > 200_000  # used a moment ago
    for path in session.settings.layers_path.glob("*/layer.json"):
        os.utime(path, (1, 1))
    again = await opening(session.id, cache_bytes=200_000)
    await again._rooms.prepare()
    await again.close()
    assert collector.size() <= 200_000
    last = await opening(session.id)
    assert await seen(last) == ["0 1 2 3 4 5", "0 1 2 3 4 5"]


async def test_a_replay_that_is_ended_is_no_replay(opening):
    """What a killed run left behind must not become the state of the step that once ended well."""
    session = await opening()
    await cell(session, 1)
    slow = "import os, time\nif os.path.exists('/tmp/slow'): pass\nfrom_now = 1"
    await run_source(session, slow, Listener())
    chain = session._tip.chain
    limits = {**chain[1].request["limits"], "wall_seconds": 0.2}
    request = {**chain[1].request, "limits": limits, "source": "import time; time.sleep(9)"}
    await waiting(session)
    await session._rooms.drop_standby()
    engine = await session._rooms.engine()
    assert await engine.evict() == 2
    from dataclasses import replace

    chain[1] = replace(chain[1], request=request)
    with pytest.raises(ReplayError, match="limit, wall"):
        await cell(session, 2)
    assert not await engine.has(chain[1].key)
    assert await engine.has(chain[0].key)

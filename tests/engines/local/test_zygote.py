"""Rooms are forks of one warm process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dagger_kernel.engines.local import LocalEngine
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings
from dagger_kernel.steps import fresh_nonce


async def test_rooms_come_from_one_zygote(fresh_data_dir):
    settings = Settings.load(data_dir=str(fresh_data_dir))
    log = open_log(settings)
    engine = LocalEngine(settings, log.blobs)
    try:
        base = await engine.prepare()
        rooms = [
            await engine.open([], fresh_nonce(), base=base, sandbox_id="one") for _ in range(3)
        ]
        assert all(room.alive for room in rooms)
        assert len({id(room._zygote) for room in rooms}) == 1
    finally:
        await engine.close()
        log.close()


@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
async def test_a_zygote_closed_while_it_starts_leaves_no_process(fresh_data_dir, seconds):
    log = open_log(Settings.load(data_dir=str(fresh_data_dir)))
    engine = LocalEngine(Settings.load(data_dir=str(fresh_data_dir)), log.blobs)
    try:
        for _ in range(5):
            base = await engine.prepare()
            await asyncio.sleep(seconds)
            engine._end_zygote(base.digest)
    finally:
        await engine.close()
        log.close()
    async with asyncio.timeout(20):  # one that was killed may take a moment to be gone
        while processes_naming(fresh_data_dir):
            await asyncio.sleep(0.05)


def processes_naming(path):
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if f"{path}/".encode() in text:
            found.append(process.name)
    return found

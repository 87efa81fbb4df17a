"""Rooms are forks of one warm process."""

from __future__ import annotations

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

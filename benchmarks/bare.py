"""What Dagger itself takes for a command in the base: the floor under a cell that finds no standby room."""

from __future__ import annotations

import asyncio
import time
import uuid

from dagger_kernel.engines.dagger.bases import Bases
from dagger_kernel.engines.dagger.connection import Connection
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings

from .client import median


def bare_exec(data_dir: str, repeat: int) -> float:
    """Return the median milliseconds of an uncached ``with_exec`` that does nothing."""
    return asyncio.run(_measure(Settings.load(data_dir=data_dir, engine="dagger"), repeat))


async def _measure(settings: Settings, repeat: int) -> float:
    log = open_log(settings)
    connection = Connection(settings)
    times = []
    try:
        base = await Bases(settings, log.blobs, connection).prepare(lambda _text: None, None)
        for _ in range(repeat):
            begin = time.perf_counter()
            nonce = base.container.with_env_variable("BENCHMARK", uuid.uuid4().hex)
            await nonce.with_exec(["true"]).sync()
            times.append((time.perf_counter() - begin) * 1000)
    finally:
        await connection.close()
        log.close()
    return median(times)

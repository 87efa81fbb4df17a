"""Two thousand uploads to one sandbox: what an upload and the next cell cost after 20 and after 2,000.

::

    python -m benchmarks.uploads --count 2000 --data-dir DIR

Files go in one by one, each a step of its own: by the session that runs the cells, and by the panel's server. The cell that follows is timed at once and again with a second of reading time before it. Two
sandboxes: one gets its files between cells, the other all of them before its next cell. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from typing import Any

from dagger_kernel.engines.base import Engine
from dagger_kernel.engines.local import LocalEngine
from dagger_kernel.log import open_log
from dagger_kernel.sandbox import Attachments, Given, SandboxSession, run_source, upload_files
from dagger_kernel.server.incoming import Incoming
from dagger_kernel.settings import Settings

FEW = 20
CELLS = 7


async def timed(work: Any) -> float:
    """Return milliseconds."""
    begin = time.perf_counter()
    await work
    return (time.perf_counter() - begin) * 1000


async def cells(session: SandboxSession) -> dict[str, float]:
    """Time the first cell, more cells back to back, and cells after a second each."""
    first = await timed(run_source(session, "x = 1"))
    quick = [await timed(run_source(session, "x += 1")) for _ in range(CELLS)]
    slow = []
    for _ in range(CELLS):
        await asyncio.sleep(1)
        slow.append(await timed(run_source(session, "x += 1")))
    return {
        "next": round(first, 1),
        "back_to_back": round(statistics.median(quick), 1),
        "after_a_second": round(statistics.median(slow), 1),
    }


async def by_the_session(session: SandboxSession, numbers: range) -> list[float]:
    """Upload through the session; return milliseconds each."""
    return [
        await timed(session.upload([(f"{number}.csv", b"%d\n" % number)])) for number in numbers
    ]


async def by_the_server(session: SandboxSession, numbers: range) -> list[float]:
    """Upload through another opening of the log and another engine, as the panel's server does."""
    log, known = open_log(session.settings), Attachments()
    engine = LocalEngine(session.settings, log.blobs)

    async def found() -> Engine:
        return engine

    incoming = Incoming(log, found)

    def put(number: int) -> None:
        given = [Given(f"{number}.csv", b"%d\n" % number)]
        upload_files(log, session.id, given, session.settings, attachments=known, reuse_equal=True)

    async def one(number: int) -> float:
        spent = await timed(asyncio.to_thread(put, number))
        incoming.put_in_soon(session.id)
        return spent

    try:
        return [await one(number) for number in numbers]
    finally:
        await incoming.close()
        await engine.close()
        log.close()


async def measure(settings: Settings, put: Any, count: int) -> dict[str, Any]:
    """Upload a few, run cells, upload many, run cells."""
    session = await SandboxSession.open(settings)
    try:
        await run_source(session, "x = 0")
        few = await put(session, range(FEW))
        after_few = await cells(session)
        many = await put(session, range(FEW, count))
        after_many = await cells(session)
        listed = await run_source(session, "import os; len(os.listdir('attachments'))")
        found = listed.result.outputs[0]["data"]["text/plain"]
    finally:
        await session.close()
    return {
        "files": int(found),
        "upload_first": round(statistics.median(few), 2),
        "upload_last": round(statistics.median(many[-FEW:]), 2),
        f"cells_after_{FEW}": after_few,
        f"cells_after_{count}": after_many,
    }


async def main() -> None:
    """Measure both ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--data-dir", default=None)
    arguments = parser.parse_args()
    named = {"data_dir": arguments.data_dir} if arguments.data_dir else {}
    settings = Settings.load(**named)
    print(
        json.dumps(
            {
                way.__name__: await measure(settings, way, arguments.count)
                for way in (by_the_session, by_the_server)
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    asyncio.run(main())

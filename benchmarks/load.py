"""Load: many clients at once on one engine; so many run, so many wait in order, the rest are told at once.

::

    python -m benchmarks.load --clients 100 [--database postgresql+psycopg://...]

Each client is a session with a sandbox of its own, in a few processes that share one log and one engine's places. Prints
figures; the exit code is 1 if more ran than may, somebody was lost, or the queue was not in order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import re
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dagger_kernel.errors import CapacityError
from dagger_kernel.sandbox import SandboxSession, run_source
from dagger_kernel.settings import Settings

from .scratch import data_directory

CELL = "import time; time.sleep({seconds}); print('done')"


@dataclass
class Client:
    """What one client saw; times are of the machine's monotonic clock."""

    asked: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    refused: float = 0.0
    positions: list[int] = field(default_factory=list)
    error: str = ""

    def event(self, head: dict[str, object], _body: bytes) -> None:
        """Take a position in the queue, or the cell's beginning."""
        text = str(head.get("text", ""))
        if head["type"] == "progress" and "in the queue" in text:
            self.positions.append(int(re.sub(r"\D", "", text)))

    async def input(self, prompt: str, password: bool) -> str:
        """Nobody answers."""
        raise EOFError


async def play(settings: Settings, client: Client, start: asyncio.Event, seconds: float) -> None:
    session = await SandboxSession.open(settings)
    try:
        # The place is held from the entrance to the result; it is what must not be exceeded.
        enter = session._turn.place

        def place(name, progress):
            held = enter(name, progress)

            class Timed:
                async def __aenter__(self):
                    await held.__aenter__()
                    client.began = time.monotonic()

                async def __aexit__(self, *error):
                    client.ended = time.monotonic()
                    return await held.__aexit__(*error)

            return Timed()

        session._turn.place = place
        await start.wait()
        client.asked = time.monotonic()
        try:
            await run_source(session, CELL.format(seconds=seconds), client)
        except CapacityError:
            client.refused = time.monotonic()
        except Exception as error:
            client.error = f"{type(error).__name__}: {error}"
    finally:
        await session.close()


def process(settings: dict[str, object], count: int, seconds: float, ready, go, out) -> None:
    async def main() -> list[Client]:
        clients = [Client() for _ in range(count)]
        start = asyncio.Event()
        tasks = [
            asyncio.create_task(play(Settings.load(**settings), client, start, seconds))
            for client in clients
        ]
        await asyncio.sleep(0.5)
        ready.release()
        await asyncio.to_thread(go.wait)
        start.set()
        await asyncio.gather(*tasks)
        return clients

    out.put([asdict(client) for client in asyncio.run(main())])


def run(
    clients: int, processes: int, seconds: float, settings: dict[str, object]
) -> dict[str, object]:
    """Run the load and return the figures."""
    context = multiprocessing.get_context("spawn")
    ready, go, out = context.Semaphore(0), context.Event(), context.Queue()
    counts = [clients // processes + (n < clients % processes) for n in range(processes)]
    children = [
        context.Process(target=process, args=(settings, count, seconds, ready, go, out))
        for count in counts
    ]
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    began = time.monotonic()
    go.set()
    seen = [Client(**item) for _ in children for item in out.get()]
    took = time.monotonic() - began
    for child in children:
        child.join()
    return figures(seen, took, Settings.load(**settings))


def figures(seen: list[Client], took: float, settings: Settings) -> dict[str, object]:
    """Return what the clients saw, together."""
    ran = [client for client in seen if client.ended and not client.error]
    refused = [client for client in seen if client.refused]
    edges = sorted([(c.began, 1) for c in ran] + [(c.ended, -1) for c in ran])
    running = most = 0
    for _, change in edges:
        running += change
        most = max(most, running)
    waited = sorted(client.began - client.asked for client in ran if client.positions)
    problems = [client.error for client in seen if client.error]
    if most > settings.max_running:
        problems.append(f"{most} ran at one time")
    if len(ran) + len(refused) + len([c for c in seen if c.error]) != len(seen):
        problems.append("somebody was lost")
    problems += [
        f"somebody moved back in the queue: {client.positions}"
        for client in ran
        if client.positions != sorted(client.positions, reverse=True)
    ]
    # Who entered behind somebody begins behind them: the first position seen tells the order.
    queue = sorted((c for c in ran if c.positions), key=lambda c: c.began)
    overtaken = sum(
        1
        for earlier, later in pairwise(queue)
        if earlier.positions[0] > later.positions[0] + settings.max_running
    )
    return {
        "clients": len(seen),
        "may_run": settings.max_running,
        "may_wait": settings.max_queued,
        "ran": len(ran),
        "refused": len(refused),
        "most_at_one_time": most,
        "most_waiting": max((c.positions[0] for c in ran if c.positions), default=0),
        "seconds": round(took, 1),
        "wait_seconds": {
            "median": round(statistics.median(waited), 2) if waited else 0,
            "most": round(waited[-1], 2) if waited else 0,
        },
        "refusal_seconds_most": round(max((c.refused - c.asked for c in refused), default=0.0), 2),
        "overtaken": overtaken,
        "problems": problems,
    }


def main() -> int:
    """Run the load from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--cell-seconds", type=float, default=1.0)
    parser.add_argument("--running", type=int, default=10)
    parser.add_argument("--queued", type=int, default=50)
    parser.add_argument("--database", default="", help="SQLAlchemy URL; else SQLite")
    parser.add_argument("--base", help="data directory whose base is borrowed; else one is built")
    arguments = parser.parse_args()
    with data_directory("load", arguments.base) as data_dir:
        settings = {
            "data_dir": str(data_dir),
            "database_url": arguments.database,
            "standby": False,
            "max_running": arguments.running,
            "max_queued": arguments.queued,
        }
        result = run(arguments.clients, arguments.processes, arguments.cell_seconds, settings)
    print(json.dumps(result, indent=2))
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""A soak: many kernels for many minutes, random cells, faults; memory and descriptors must stay flat.

::

    python -m benchmarks.soak --kernels 20 --minutes 30 --seed 1

Each kernel is a session with a sandbox of its own in this process; all share one data directory, one log and
the engine's places. The promise of ``tests/faults/injector.py`` is checked after every turn. Prints the figures as JSON, and
one line that says how it went; the exit code is 1 when a step was lost or doubled, or memory or descriptors grew.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dagger_kernel.settings import Settings
from tests.faults.injector import FAULTS, Trial

from .scratch import data_directory

# Patched for the whole process while they last: with other kernels beside, they would strike those.
SHARED = {"full_at_squash", "full_at_rename", "clock_jump"}
CALM = 0.7
TURNS_PER_SANDBOX = 60


def figures() -> dict[str, int]:
    """Return this process's memory, descriptors and children."""
    with open("/proc/self/status", encoding="ascii") as status:
        lines = dict(line.split(":", 1) for line in status)
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
        count = len(children.read().split())
    return {
        "rss_mib": int(lines["VmRSS"].split()[0]) // 1024,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "children": count,
    }


async def kernel(
    number: int,
    data_dir: Path,
    seed: int,
    until: float,
    totals: dict[str, Counter],
    broken: list[str],
) -> None:
    """Play one kernel until the time is over; begin a new sandbox now and then."""
    dice = random.Random(seed * 1000 + number)
    faults = [fault for fault in FAULTS if fault not in SHARED]
    while time.monotonic() < until:
        trial = Trial(data_dir, dice, max_running=4, standby_max=4)
        await trial.open()
        try:
            for _ in range(TURNS_PER_SANDBOX):
                if time.monotonic() >= until:
                    break
                fault = "none" if dice.random() < CALM else dice.choice(faults)
                await trial.turn(fault)
            problems = trial.session._log.verify(trial.id)
            broken += problems
        except Exception as error:
            broken.append(f"kernel {number}: {type(error).__name__}: {error}")
        finally:
            totals["faults"] += trial.faults
            totals["errors"] += trial.errors
            totals["acknowledged"]["steps"] += len(trial.acknowledged)
            with contextlib.suppress(Exception):
                await trial.close()


async def watch(until: float, every: float, seen: list[dict[str, float]]) -> None:
    """Take figures now and then."""
    began = time.monotonic()
    while time.monotonic() < until:
        seen.append({"seconds": round(time.monotonic() - began), **figures()})
        await asyncio.sleep(every)


def growth(seen: list[dict[str, float]]) -> dict[str, dict[str, float | bool]]:
    """Compare the second quarter of a run (the first warms up) with the last."""
    quarter = max(1, len(seen) // 4)
    found = {}
    for name in ("rss_mib", "descriptors", "children"):
        before, after = (
            statistics.median(figure[name] for figure in part)
            for part in (seen[quarter : 2 * quarter] or seen, seen[-quarter:])
        )
        # A run of minutes still fills caches of the allocator; half an hour must not grow.
        found[name] = {
            "second_quarter": before,
            "last_quarter": after,
            "flat": after <= before * 1.1 + 4,
        }
    return found


async def soak(arguments: argparse.Namespace, data_dir: Path) -> dict[str, Any]:
    """Run it and return the figures."""
    until = time.monotonic() + 60 * arguments.minutes
    totals: dict[str, Counter] = {name: Counter() for name in ("faults", "errors", "acknowledged")}
    broken: list[str] = []
    seen: list[dict[str, float]] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(watch(until, max(5.0, 6 * arguments.minutes), seen))
        for number in range(arguments.kernels):
            group.create_task(kernel(number, data_dir, arguments.seed, until, totals, broken))
    await asyncio.sleep(1)
    return {
        "kernels": arguments.kernels,
        "minutes": arguments.minutes,
        "seed": arguments.seed,
        "acknowledged": totals["acknowledged"]["steps"],
        "turns": sum(totals["faults"].values()),
        "faults": dict(totals["faults"]),
        "errors": dict(totals["errors"]),
        "lost_or_doubled": broken,
        "growth": growth(seen),
        "figures": seen,
        "at_the_end": figures(),
    }


def main() -> int:
    """Run the soak from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base", help="data directory whose base is borrowed; else one is built")
    arguments = parser.parse_args()
    with data_directory("soak", arguments.base) as data_dir:
        Settings.load(data_dir=str(data_dir))
        result = asyncio.run(soak(arguments, data_dir))
    print(json.dumps(result, indent=2))
    lost = len(result["lost_or_doubled"])
    # Shorter runs still warm up in their second quarter.
    told = arguments.minutes >= 10
    grown = [name for name, item in result["growth"].items() if told and not item["flat"]]
    print(
        f"{result['acknowledged']} steps acknowledged in {result['turns']} turns, "
        f"{result['turns'] - result['faults'].get('none', 0)} of them with a fault; {lost} lost or doubled; "
        + (
            f"grew: {', '.join(grown)}"
            if grown
            else "memory, descriptors and children flat"
            if told
            else "too short to tell growth"
        )
    )
    return 1 if lost or grown else 0


if __name__ == "__main__":
    sys.exit(main())

"""A soak: many kernels for many minutes, random cells, faults; memory and descriptors must stay flat.

::

    python -m benchmarks.soak --kernels 20 --minutes 30 --seed 1

Each kernel is a process with a session of its own, as in deployments, and begins a new sandbox now and then; all
share one data directory, one log and the engine's places. The promise of ``tests/faults/injector.py`` is checked after every
turn. Prints the figures, summed over the kernels, as JSON, and one line that says how it went; the exit code is 1 when a step
was lost or doubled, or memory or descriptors grew.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dagger_kernel.settings import Settings
from tests.faults.injector import FAULTS, Trial

from .scratch import data_directory

CALM = 0.7
TURNS_PER_SANDBOX = 60


def figures() -> dict[str, int]:
    """Return this process's memory, objects of Python's collector, descriptors and children.

    Memory is what is left after freed memory was given back (``malloc_trim``).
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/status", encoding="ascii") as status:
        lines = dict(line.split(":", 1) for line in status)
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
        count = len(children.read().split())
    return {
        "rss_mib": int(lines["VmRSS"].split()[0]) // 1024,
        "objects": len(gc.get_objects()),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "children": count,
    }


async def kernel(number: int, data_dir: Path, seed: int, minutes: float) -> dict[str, Any]:
    """Play one kernel until the time is over; return what happened."""
    until = time.monotonic() + 60 * minutes
    dice = random.Random(seed * 1000 + number)
    faults, errors, acknowledged = Counter(), Counter(), 0
    broken: list[str] = []
    seen: list[dict[str, int]] = []
    watching = asyncio.create_task(watch(until, max(5.0, 6 * minutes), seen))
    while time.monotonic() < until:
        trial = Trial(data_dir, dice, max_running=4, standby_max=4)
        await trial.open()
        try:
            for _ in range(TURNS_PER_SANDBOX):
                if time.monotonic() >= until:
                    break
                await trial.turn("none" if dice.random() < CALM else dice.choice(FAULTS))
            broken += trial.session._log.verify(trial.id)
        except Exception as error:
            broken.append(f"kernel {number}: {type(error).__name__}: {error}")
        finally:
            faults += trial.faults
            errors += trial.errors
            acknowledged += len(trial.acknowledged)
            with contextlib.suppress(Exception):
                await trial.close()
    await watching
    return {
        "acknowledged": acknowledged,
        "faults": faults,
        "errors": errors,
        "lost_or_doubled": broken,
        "figures": seen,
        "at_the_end": figures(),
    }


async def watch(until: float, every: float, seen: list[dict[str, int]]) -> None:
    """Take figures now and then."""
    while time.monotonic() < until:
        seen.append(figures())
        await asyncio.sleep(every)


def growth(seen: list[dict[str, int]]) -> dict[str, dict[str, float | bool]]:
    """Compare the second quarter of a run (the first warms up) with the last."""
    quarter = max(1, len(seen) // 4)
    found = {}
    for name in ("rss_mib", "objects", "descriptors", "children"):
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


def added(figures: Iterable[dict[str, int]]) -> dict[str, int]:
    """Add up the figures of kernels."""
    return dict(sum(map(Counter, figures), Counter()))


def soak(arguments: argparse.Namespace, data_dir: Path) -> dict[str, Any]:
    """Run the kernels' processes and return the figures of all."""
    command = [sys.executable, "-m", "benchmarks.soak", "--seed", str(arguments.seed)]
    command += ["--minutes", str(arguments.minutes), "--data-dir", str(data_dir), "--number"]
    numbers = range(arguments.kernels)
    processes = [subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE) for n in numbers]
    with ThreadPoolExecutor(len(processes)) as readers:
        outputs = list(readers.map(lambda process: process.communicate()[0], processes))
    ended = [n for n in numbers if processes[n].returncode == 0]
    results = [json.loads(outputs[n]) for n in ended]
    broken = [f"kernel {n} died: {processes[n].returncode}" for n in numbers if n not in ended]
    seen = [added(at_once) for at_once in zip(*(r["figures"] for r in results), strict=False)]
    faults = added(r["faults"] for r in results)
    return {
        "kernels": arguments.kernels,
        "minutes": arguments.minutes,
        "seed": arguments.seed,
        "acknowledged": sum(r["acknowledged"] for r in results),
        "turns": sum(faults.values()),
        "faults": faults,
        "errors": added(r["errors"] for r in results),
        "lost_or_doubled": broken + [text for r in results for text in r["lost_or_doubled"]],
        "growth": growth(seen),
        "figures": seen,
        "at_the_end": added(r["at_the_end"] for r in results),
    }


def main() -> int:
    """Run the soak from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base", help="data directory whose base is borrowed; else one is built")
    parser.add_argument("--data-dir", type=Path, help="used by the kernels' own processes")
    parser.add_argument("--number", type=int, help="used by the kernels' own processes")
    arguments = parser.parse_args()
    if arguments.number is not None:
        playing = kernel(arguments.number, arguments.data_dir, arguments.seed, arguments.minutes)
        print(json.dumps(asyncio.run(playing)))
        return 0
    with data_directory("soak", arguments.base) as data_dir:
        Settings.load(data_dir=str(data_dir))
        result = soak(arguments, data_dir)
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

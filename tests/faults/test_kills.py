"""kill -9 of the kernel's process at each point of a step: what was acknowledged is there, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from dagger_kernel.sandbox import SandboxSession, run_source
from dagger_kernel.settings import Settings

from ..security.conftest import shortened
from .injector import CELL, CHECK, Listener

POINTS = {
    # what is patched, and whether the kill comes before or after the call
    "before the step is logged": ("log._writer", "append", "before"),
    "after the step was logged": ("log._writer", "append", "after"),
    "before the room gets it": ("room", "run", "before"),
    "while it runs": ("listener", "", ""),
    "when the outcome is there": ("room", "run", "after"),
    "before an artifact is stored": ("log.blobs", "put", "before"),
    "after an artifact was stored": ("log.blobs", "put", "after"),
    "before the result is logged": ("log._writer", "finish", "before"),
    "after the result was logged": ("log._writer", "finish", "after"),
    "before the layer": ("layers", "commit", "before"),
    "between the layer's record and its name": ("os", "rename", "before"),
    "after the layer got its name": ("os", "rename", "after"),
    "while layers are squashed": ("os", "link", "after"),
    "before the next room": ("layers", "new_room", "before"),
    "after the next room": ("layers", "new_room", "after"),
}
DRIVER = """
    import asyncio, functools, inspect, os, signal, sys
    from dagger_kernel.engines.local.room import LocalRoom
    from dagger_kernel.sandbox import SandboxSession, run_source
    from dagger_kernel.settings import Settings
    from tests.faults.injector import CELL, Listener

    place, owner, name, moment, before = sys.argv[1:6]

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    async def main():
        settings = Settings.load(data_dir=place)
        session = await SandboxSession.open(settings)
        print("id", session.id, flush=True)
        extra = "open('out.csv', 'w').write(str(len(xs)))"
        for number in range(1, int(before) + 1):
            await run_source(session, CELL.format(number=number, extra=extra), Listener())
            print("done", number, flush=True)
        await asyncio.sleep(0.5)  # the last layer and the next standby are there
        log, engine = session._log, session._rooms._engine
        if owner != "listener":
            target = {"log._writer": log._writer, "log.blobs": log.blobs, "room": LocalRoom, "layers": engine.layers, "os": os}[owner]
            real = getattr(target, name)
            if inspect.iscoroutinefunction(real):
                async def fatal(*args, **kwargs):
                    if moment == "before": die()
                    await real(*args, **kwargs)
                    die()
            else:
                def fatal(*args, **kwargs):
                    if moment == "before": die()
                    real(*args, **kwargs)
                    die()
            setattr(target, name, fatal)
        strike = die if owner == "listener" else None
        await run_source(session, CELL.format(number=int(before) + 1, extra=extra), Listener(strike))
        print("done", int(before) + 1, flush=True)
        await asyncio.sleep(20)

    asyncio.run(main())
"""


SLOW_POINTS = {
    "before the step is logged",
    "before the room gets it",
    "before an artifact is stored",
    "before the layer",
    "after the layer got its name",
    "before the next room",
    "after the next room",
    "while layers are squashed",
}


@pytest.mark.parametrize("point", shortened(POINTS, SLOW_POINTS))
async def test_kill_9(fresh_data_dir, point):
    owner, name, moment = POINTS[point]
    before = 15 if name == "link" else 1  # the sixteenth layer squashes
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DRIVER), str(fresh_data_dir), owner, name, moment, str(before)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()}, timeout=200,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    (_, identity), *told = lines
    acknowledged = [int(number) for _, number in told]
    session = await SandboxSession.open(
        Settings.load(data_dir=str(fresh_data_dir)), sandbox_id=identity
    )
    try:
        listener = Listener()
        await run_source(session, CHECK, listener)
        shown, kept = ([int(n) for n in line.split()] for line in listener.text.split("\n")[:2])
        steps = await session.steps()
        logged = [
            int(s.source.split("xs.append(")[1].split(")")[0])
            for s, r in steps
            if r is not None and "xs.append(" in s.source
        ]
        assert shown == kept == logged
        assert set(acknowledged) <= set(logged)
        assert set(logged) <= {*acknowledged, before + 1}
        assert session._log.verify(identity) == []
        # It goes on, and nothing of the dead process is in the way.
        follow = Listener()
        await run_source(session, CELL.format(number=99, extra="print(xs)"), follow)
        assert follow.text.endswith(f"{[*logged, 99]}\n")
    finally:
        await session.close()


async def test_rooms_of_a_dead_process_end_with_it(fresh_data_dir):
    """bubblewrap's pid namespace goes with its parent: nothing of a killed kernel runs on."""
    import asyncio

    code = textwrap.dedent(DRIVER)
    mark = f"mark-{os.getpid()}-{os.urandom(4).hex()}"
    code = code.replace(
        "open('out.csv', 'w').write(str(len(xs)))",
        f"import subprocess; subprocess.run(['sleep', '321', '{mark}'])",
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(fresh_data_dir), "listener", "", "", "0"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()}, timeout=60,
    )  # fmt: skip
    assert process.returncode == -signal.SIGKILL
    await asyncio.sleep(1)
    left = subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True)
    assert left.stdout == ""

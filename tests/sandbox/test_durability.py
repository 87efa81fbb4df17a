"""The log is the only truth: everything else may vanish at any time."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from dagger_kernel.sandbox import InterruptedByUser, run_source

from .conftest import Listener, interrupted, text_of


async def test_a_sandbox_opens_again_where_it_was(opening):
    first = await opening()
    await run_source(first, "x = [1]; y = x; open('f', 'w').write('kept')")
    await first.close()
    again = await opening(first.id)
    assert again.next_execution_count == 2
    assert await text_of(again, "y.append(2); print(x, open('f').read())") == "[1, 2] kept\n"


async def test_every_cache_may_vanish(opening):
    first = await opening()
    await run_source(first, "import random; r = random.random(); x = [r]")
    before = await text_of(first, "open('f', 'w').write('kept'); print(x, r)")
    await first.close()
    shutil.rmtree(opening.data_dir / "layers")
    again = await opening(first.id)
    listener = Listener()
    done = await run_source(again, "print(x, r); f = open('f').read()", listener)
    assert listener.text == before
    assert "replaying 2/2" in listener.progress
    assert done.drift == []


async def test_a_replay_that_differs_is_reported(opening):
    first = await opening()
    await run_source(first, "import time; t = time.time_ns(); print(t)")
    await run_source(first, "print('the same')")
    await first.close()
    shutil.rmtree(opening.data_dir / "layers")
    again = await opening(first.id)
    done = await run_source(again, "pass")
    assert len(done.drift) == 1
    assert "step 1" in done.drift[0]
    assert "cell [1]" in done.drift[0]
    assert (await run_source(again, "pass")).drift == []


async def test_an_interrupted_step_is_not_repeated_but_its_effect_is_kept(opening):
    first = await opening()
    source = "x = 1; open('count', 'a').write('.')\nprint('go', flush=True)\nimport time; time.sleep(600)"
    done = await interrupted(first, source)
    assert done.result.status == "interrupted"
    assert done.result.layer is not None
    await first.close()
    shutil.rmtree(opening.data_dir / "layers")
    again = await opening(first.id)
    assert await text_of(again, "print(x, open('count').read())") == "1 .\n"


async def test_an_effect_too_large_to_keep_is_dropped_and_told(opening):
    first = await opening(layer_bytes=1000)
    await run_source(first, "x = 0")
    listener = Listener()
    source = "x = 1; import os; open('big', 'wb').write(os.urandom(100_000))\nprint('go', flush=True)\nimport time; time.sleep(600)"
    done = await interrupted(first, source, listener)
    assert done.result.layer is None
    assert "DAGGER_KERNEL_LAYER_BYTES" in listener.text
    assert await text_of(first, "import os; print(x, os.path.exists('big'))") == "0 False\n"


KILLED = """
    import asyncio, os, signal, sys
    from dagger_kernel.sandbox import SandboxSession, run_source
    from dagger_kernel.settings import Settings

    async def main():
        session = await SandboxSession.open(Settings.load(data_dir=sys.argv[1], engine="local"))
        print(session.id, flush=True)
        await run_source(session, "x = 1; open('f', 'w').write('kept')")
        print("acknowledged", flush=True)
        if sys.argv[2] == "running":
            class Killer:
                def event(self, head, body):
                    if "now" in head.get("text", ""):
                        os.kill(os.getpid(), signal.SIGKILL)
            await run_source(session, "x = 2; print('now', flush=True); import time; time.sleep(60)", Killer())
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())
"""


@pytest.mark.parametrize("moment", ["idle", "running"])
async def test_kill_9_of_the_process_loses_nothing_acknowledged(opening, moment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(opening.data_dir), moment],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    sandbox_id, acknowledged = done.stdout.split()
    assert acknowledged == "acknowledged"
    session = await opening(sandbox_id)
    assert await text_of(session, "print(x, open('f').read())") == "1 kept\n"
    steps = await session.steps()
    unfinished = [step.seq for step, result in steps if result is None]
    assert unfinished == ([2] if moment == "running" else [])


async def test_a_step_that_caught_its_interrupt_is_not_repeated(opening):
    first = await opening()
    source = (
        "import time\n"
        "try:\n    print('go', flush=True); time.sleep(600)\n"
        "except KeyboardInterrupt:\n    x = 'caught'; print(x)"
    )
    done = await interrupted(first, source)
    assert done.result.status == "ok"
    assert done.result.layer is not None
    await first.close()
    shutil.rmtree(opening.data_dir / "layers")
    again = await opening(first.id)
    assert await text_of(again, "print(x)") == "caught\n"


SLOW = "import time; time.sleep(0.4)"


async def replaying_standby(opening):
    """Return a session whose standby is replaying three slow steps, and the time that takes."""
    first = await opening()
    for _ in range(3):
        await run_source(first, SLOW)
    await first.close()
    shutil.rmtree(opening.data_dir / "layers")
    again = await opening(first.id)
    again.start_warming()
    return again


async def test_a_replay_that_the_standby_began_is_shown(opening):
    session = await replaying_standby(opening)
    listener = Listener()
    await run_source(session, "print('after')", listener)
    assert listener.text == "after\n"
    assert "replaying 3/3" in listener.progress


@pytest.mark.parametrize("who", ["a cell", "a listing of files"])
async def test_what_is_missing_is_made_once_whoever_needs_it_first(opening, who):
    session = await replaying_standby(opening)
    replayed, tell = [], session._tip.drift.replayed

    def count(step, *rest):
        replayed.append(step.seq)
        tell(step, *rest)

    session._tip.drift.replayed = count
    engine = await session._rooms.engine()
    describe = engine.describe

    async def late():
        while session._rooms.base is None:  # the other one is faster
            await asyncio.sleep(0.01)
        return await describe()

    engine.describe = late
    if who == "a cell":
        assert await text_of(session, "print('after')") == "after\n"
    else:
        await session.files()
    assert await text_of(session, "print('later')") == "later\n"
    assert replayed == [1, 2, 3]


async def test_an_interrupt_stops_a_replay_that_the_standby_began(opening):
    session = await replaying_standby(opening)
    listener = Listener()
    running = asyncio.create_task(run_source(session, "print('after')", listener))
    while not any("replaying" in line for line in listener.progress):
        await asyncio.sleep(0.01)
    await session.interrupt()
    with pytest.raises(InterruptedByUser):
        await running
    assert await text_of(session, "print('later')") == "later\n"

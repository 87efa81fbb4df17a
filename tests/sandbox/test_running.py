"""Running cells: what a client gets back, what is logged, what is not."""

from __future__ import annotations

import asyncio

import pytest

from dagger_kernel.errors import (
    CapacityError,
    SandboxDisabledError,
    SandboxNotFoundError,
    SettingError,
)
from dagger_kernel.sandbox import Cell, InterruptedByUser, SilentListener, run_source
from dagger_kernel.steps import Language, Limits, child_key, root_key

from .conftest import Listener, started, text_of

SLEEPING = "print('go', flush=True); import time; time.sleep(600)"


async def test_a_step_is_logged_with_all_that_can_change_its_outcome(session):
    done = await run_source(session, "print('hello'); 6 * 7")
    (step, result), *rest = await session.steps()
    assert rest == []
    assert (step.seq, step.source, step.engine) == (1, "print('hello'); 6 * 7", "local")
    assert step.key == child_key(root_key(step.base_digest, step.runner_digest), step.nonce)
    assert step.limits == session.settings.limits
    assert result == done.result
    assert [o["output_type"] for o in result.outputs] == ["stream", "execute_result"]
    assert result.execution_count == 1


async def test_a_silent_cell_leaves_nothing(session):
    await run_source(session, "x = 1")
    cell = Cell(source="x = 2; open('f', 'w').close()", silent=True)
    done = await session.run(cell, SilentListener())
    assert done.step is None
    assert await text_of(session, "import os; print(x, os.path.exists('f'))") == "1 False\n"
    assert [step.seq for step, _ in await session.steps()] == [1, 2]


async def test_files_come_back_with_their_bytes(session):
    done = await run_source(
        session, "open('a.csv', 'w').write('a,b\\n1,2\\n'); import os; os.mkfifo('p')"
    )
    files = {file.path: file for file in done.files}
    assert files["a.csv"].data == b"a,b\n1,2\n"
    assert files["a.csv"].mime == "text/csv"
    assert files["p"].data is None
    assert files["p"].skipped
    done = await run_source(session, "open('a.csv', 'a').write('3,4\\n')")
    assert [(f.path, f.kind) for f in done.files] == [("a.csv", "changed")]


async def test_limits_of_one_cell_are_recorded_and_hold(session):
    limits = Limits(output_bytes=100)
    done = await session.run(Cell(source="print('x' * 1000)", limits=limits), SilentListener())
    assert done.step.limits.output_bytes == 100
    assert done.result.truncated
    kept = [file for file in done.files if file.kind == "output"]
    assert kept[0].data == b"x" * 1000 + b"\n"


async def test_secrets_reach_the_cell_and_nothing_else(session):
    cell = Cell(source="import os; print(len(os.environ['TOKEN']))", env={"TOKEN": "s3cret-value"})
    listener = Listener()
    done = await session.run(cell, listener)
    assert listener.text == "12\n"
    assert done.step.payload["secrets"] == ["TOKEN"]
    assert "s3cret-value" not in str(done)
    for root, _, names in __import__("os").walk(session.settings.data_dir):
        for name in names:
            if "bases" not in root:
                with open(f"{root}/{name}", "rb") as file:
                    assert b"s3cret-value" not in file.read(), name
    assert await text_of(session, "import os; print('TOKEN' in os.environ)") == "False\n"


async def test_bash_cells_share_the_files(session):
    await run_source(session, "open('f', 'w').write('from python')")
    listener = Listener()
    cell = Cell(source="cat f; export A=1", language=Language.BASH, execution_count=2)
    await session.run(cell, listener)
    assert listener.text == "from python"


async def test_switched_off_means_refused(opening):
    session = await opening(enabled=False)
    with pytest.raises(SandboxDisabledError):
        await run_source(session, "1")
    assert await session.steps() == []


async def test_an_unknown_sandbox_is_an_error(opening):
    with pytest.raises(SandboxNotFoundError):
        await opening("0123456789abcdef")


async def test_one_notebook_one_sandbox_until_it_is_restarted(opening):
    one = await opening(notebook="/n.ipynb")
    two = await opening(notebook="/n.ipynb")
    other = await opening(notebook="/m.ipynb")
    assert one.id == two.id != other.id
    await two.end(restart=True)
    three = await opening(notebook="/n.ipynb")
    assert three.id != one.id
    assert (await opening()).id not in (one.id, three.id)


async def test_two_sessions_on_one_sandbox_take_turns(opening):
    one = await opening()
    await run_source(one, "xs = []")
    two = await opening(one.id)
    for number in range(3):
        await asyncio.gather(
            run_source(one, f"xs.append('one {number}')"),
            run_source(two, f"xs.append('two {number}')"),
        )
    assert await text_of(two, "print(len(xs), len(set(xs)))") == "6 6\n"
    assert [step.seq for step, _ in await one.steps()] == list(range(1, 9))


async def test_past_the_queue_there_is_a_clear_error(opening):
    one, two = (
        await opening(max_running=1, max_queued=0),
        await opening(max_running=1, max_queued=0),
    )
    running = await started(one, SLEEPING)
    with pytest.raises(CapacityError, match="DAGGER_KERNEL_MAX_RUNNING"):
        await run_source(two, "1")
    assert await two.steps() == []
    await one.interrupt()
    await running


async def test_the_limits_can_be_changed_while_steps_run(opening, tmp_path, monkeypatch):
    """In the administrator's file or the user's; kernels look when they need a place."""
    admin = tmp_path / "admin.toml"
    monkeypatch.setattr("dagger_kernel.settings.ADMIN_FILE", admin)
    one, two = (
        await opening(max_running=1, max_queued=5),
        await opening(max_running=1, max_queued=5),
    )
    running = await started(one, SLEEPING)
    waiting = Listener()
    queued = asyncio.create_task(run_source(two, "print('mine')", waiting))
    while not any("1 in the queue" in line for line in waiting.progress):
        await asyncio.sleep(0.02)
    admin.write_text("[fixed]\nmax_running = 2\n")
    await queued  # it runs beside the other
    assert not running.done()
    admin.write_text("[fixed]\nmax_running = 1\nmax_queued = 0\n")
    with pytest.raises(CapacityError):
        await run_source(two, "1")
    admin.write_text("[fixed\n")  # half written: a missing rule is worse
    with pytest.raises(SettingError):
        await run_source(two, "1")
    await one.interrupt()
    await running


async def test_waiting_in_the_queue_is_shown_and_interruptible(opening):
    one, two = await opening(max_running=1), await opening(max_running=1)
    waiting = Listener()
    running = await started(one, SLEEPING)
    queued = asyncio.create_task(run_source(two, "print('mine')", waiting))
    while not any("1 in the queue" in line for line in waiting.progress):
        await asyncio.sleep(0.02)
    await two.interrupt()
    with pytest.raises(InterruptedByUser):
        await queued
    await one.interrupt()
    await running
    assert await text_of(two, "print('later')") == "later\n"


async def test_an_interrupt_when_idle_changes_nothing(session):
    await session.interrupt()
    assert await text_of(session, "print('fine')") == "fine\n"
    await session.interrupt()
    assert await text_of(session, "print('fine')") == "fine\n"


async def test_questions_are_no_steps(session):
    await run_source(session, "wombat = 1")
    answer = await session.ask("complete", {"code": "womb", "cursor_pos": 4})
    assert "wombat" in answer["matches"]
    assert len(await session.steps()) == 1


async def test_shared_reuse_runs_equal_cells_once(opening):
    source = "import os; n = os.urandom(8).hex(); print(n)"
    one = await opening(reuse="shared")
    first = await text_of(one, source)
    two = await opening(reuse="shared")
    assert await text_of(two, source) == first


async def test_the_first_cell_while_warming_shares_its_engine(opening):
    session = await opening()
    session.start_warming()
    assert await text_of(session, "x = 1; print(x)") == "1\n"
    assert await text_of(session, "print(x)") == "1\n"
    assert await text_of(session, "print(x)") == "1\n"


async def test_an_interrupt_while_the_step_is_logged_reaches_the_cell(session):
    await run_source(session, "x = 1")
    append = session._log.append

    def slow_append(step):
        import time

        time.sleep(0.5)
        return append(step)

    session._log.append = slow_append
    running = asyncio.create_task(run_source(session, "import time; time.sleep(600)"))
    while not session._runs._starting:
        await asyncio.sleep(0.01)
    await session.interrupt()
    done = await asyncio.wait_for(running, 60)
    assert done.result.status == "interrupted"

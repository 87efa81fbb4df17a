"""A lost variable made again, as logged cells of a sandbox."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dagger_kernel import Sandbox
from dagger_kernel.sandbox import Cell, run_source

from .conftest import Listener, text_of

READER = "import csv\nrows = csv.reader(['1,2', '3,4', '5,6'])"


async def test_each_cell_that_uses_it_makes_it_again(session):
    first = await run_source(session, READER)
    assert [entry["name"] for entry in first.result.state_report["lost"]] == ["rows"]
    assert await text_of(session, "%sandbox recompute rows") == "rows: made again by cell [1]\n"
    assert await text_of(session, "print(next(rows))") == "['1', '2']\n"
    assert await text_of(session, "print(next(rows))") == "['3', '4']\n"


async def test_a_cold_replay_makes_it_again_as_well(session, opening):
    await run_source(session, READER)
    await run_source(session, "%sandbox recompute rows\nfirst = next(rows)")
    await session.close()
    again = await opening(session.id)
    engine = await again._rooms.engine()
    await engine.evict()
    assert await text_of(again, "print(first, next(rows))") == "['1', '2'] ['3', '4']\n"


async def test_the_setting_makes_it_again_without_being_asked(opening):
    session = await opening(recompute=True)
    await run_source(session, READER)
    assert await text_of(session, "print(next(rows))") == "['1', '2']\n"
    assert await text_of(session, "print(next(rows))") == "['3', '4']\n"
    steps = await session.steps()
    assert steps[-1][0].payload["recompute"] is True


async def test_cells_that_changed_files_do_not_run_again(opening):
    session = await opening(recompute=True)
    await run_source(session, READER + "\nopen('note.txt', 'w').write('once')")
    done = await run_source(session, "next(rows)")
    (error,) = [o for o in done.result.outputs if o["output_type"] == "error"]
    assert error["ename"] == "StateLostError"
    assert "cell [1] changed files (note.txt)" in error["evalue"]
    done = await run_source(session, "%sandbox recompute rows")
    (error,) = [o for o in done.result.outputs if o["output_type"] == "error"]
    assert error["ename"] == "RecomputeError"
    assert len(error["traceback"]) == 1


async def test_a_file_that_was_changed_since(opening):
    session = await opening(recompute=True)
    await run_source(session, "%%bash\nprintf '1,2\\n3,4\\n' > in.csv")
    await run_source(session, "import csv; rows = csv.reader(list(open('in.csv')))")
    assert await text_of(session, "print(next(rows))") == "['1', '2']\n"
    await run_source(session, "!echo 9,9 >> in.csv")
    done = await run_source(session, "next(rows)")
    (error,) = [o for o in done.result.outputs if o["output_type"] == "error"]
    assert "cell [2] reads in.csv, which a later cell changed" in error["evalue"]


async def test_a_cell_that_asked_does_not_run_again(opening):
    session = await opening(recompute=True)
    source = "import csv; rows = csv.reader([input()])"
    cell = Cell(source=source, execution_count=1, allow_stdin=True)
    await session.run(cell, Listener("1,2"))
    done = await run_source(session, "next(rows)")
    (error,) = [o for o in done.result.outputs if o["output_type"] == "error"]
    assert "cell [1] asked for input" in error["evalue"]


async def test_the_limits_of_the_cell_hold_for_the_cells_it_runs_again(opening):
    session = await opening(recompute=True)
    await run_source(session, "import builtins, csv, time")
    await run_source(
        session, "rows = csv.reader(['1'])\nif hasattr(builtins, '_slow'): time.sleep(60)"
    )
    await run_source(session, "builtins._slow = True")
    limits = replace(session.settings.limits, wall_seconds=2.0)
    cell = Cell(source="next(rows)", execution_count=4, limits=limits)
    done = await session.run(cell, Listener())
    assert str(done.result.status) == "limit"


def test_the_python_api(fresh_data_dir):
    with Sandbox(data_dir=str(fresh_data_dir)) as sandbox:
        sandbox.run(READER)
        assert sandbox.run("next(rows)").error.name == "StateLostError"
        done = sandbox.recompute("rows")
        assert (done.error, "".join(done.logs.stdout)) == (None, "rows: made again by cell [1]\n")
        assert sandbox.run("next(rows)").text == "['1', '2']"
        assert sandbox.recompute("nothing").error.name == "RecomputeError"
        with pytest.raises(ValueError, match="no name"):
            sandbox.recompute("a b")

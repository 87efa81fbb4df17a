"""A lost variable made again, on every engine."""

from __future__ import annotations

from .conftest import text

READER = "import csv\nrows = csv.reader(['1,2', '3,4', '5,6'])"


async def test_on_request_and_by_the_cells_that_use_it(bench):
    await bench.cell(READER)
    _, frames = await bench.cell("%sandbox recompute rows")
    assert text(frames) == "rows: made again by cell [1]\n"
    _, frames = await bench.cell("print(next(rows))")
    assert text(frames) == "['1', '2']\n"
    await bench.engine.evict()
    _, frames = await bench.cell("print(next(rows))")
    assert text(frames) == "['3', '4']\n"


async def test_automatically(bench):
    await bench.cell(READER, recompute=True)
    _, frames = await bench.cell("print(next(rows))", recompute=True)
    assert text(frames) == "['1', '2']\n"


async def test_never_where_files_were_changed(bench):
    await bench.cell(READER + "\nopen('note.txt', 'w').write('once')")
    outcome, frames = await bench.cell("%sandbox recompute rows")
    (error,) = [head for head, _ in frames.frames if head["type"] == "error"]
    assert (outcome.status, error["ename"]) == ("error", "RecomputeError")
    assert "cell [1] changed files (note.txt)" in error["evalue"]

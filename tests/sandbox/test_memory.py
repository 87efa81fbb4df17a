"""A large frame costs a cell no memory of its own where the cell only reads it, within the default limit."""

from __future__ import annotations

import pytest

from dagger_kernel.sandbox import run_source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MAKE = (
    "import numpy as np, pandas as pd\n"
    "values = np.arange(87_500_000.0).reshape(-1, 10)\n"
    "frame = pd.DataFrame(values, columns=list('abcdefghij'), copy=False); del values\n"
    "int(frame.memory_usage(index=False).sum())"
)
"""700 MB."""


async def result_of(session, source):
    done = await run_source(session, source)
    assert str(done.result.status) == "ok", done.result.outputs
    (result,) = [o for o in done.result.outputs if o["output_type"] == "execute_result"]
    return result["data"]["text/plain"], done.result


@pytest.fixture
async def frame(session):
    assert session.settings.memory_bytes == 1 << 30
    text, _ = await result_of(session, MAKE)
    assert text == "700000000"
    return session


async def test_cells_that_read_a_700_mb_frame_stay_inside_the_limit(frame):
    text, result = await result_of(frame, "float(frame.iloc[12_345, 3])")
    assert text == "123453.0"
    assert result.state_report["bytes_written"] < 64_000
    text, result = await result_of(frame, "float(frame['c'].max())")
    assert text == "87499992.0"
    text, result = await result_of(frame, "frame.head(2).shape")
    assert text == "(2, 10)"
    assert result.state_report["bytes_written"] < 64_000


async def test_a_cell_that_reads_every_column(frame):
    text, result = await result_of(
        frame,
        "[float(frame[name].to_numpy()[-1]) for name in frame], float(frame.to_numpy().max())",
    )
    assert text.endswith("87499999.0)")
    assert result.state_report["bytes_written"] < 64_000
    text, _ = await result_of(
        frame, "float(sum(frame[name].sum() for name in frame)) > 0, frame.shape"
    )
    assert text == "(True, (8750000, 10))"


async def test_a_cell_that_writes_one_element(frame):
    text, result = await result_of(frame, "frame.iloc[5, 5] = -1.0\nfloat(frame.iloc[5, 5])")
    assert text == "-1.0"
    assert result.state_report["bytes_written"] < 2 << 20
    text, _ = await result_of(frame, "float(frame.iloc[5, 5]), float(frame.iloc[5, 4])")
    assert text == "(-1.0, 54.0)"

"""What a cell loads and saves follows what it touches, not what exists: shown by the state report."""

from __future__ import annotations

from dagger_kernel.sandbox import run_source

from .conftest import text_of

FRAME = (
    "import pandas as pd, numpy as np\n"
    "df = pd.DataFrame(np.arange(400_000.0).reshape(-1, 4), columns=list('abcd'))"
)


async def test_looking_at_a_frame_again_loads_the_frame_alone(session):
    await run_source(session, FRAME)
    for _ in range(4):
        done = await run_source(session, "df.head()")
    assert done.result.state_report["loaded"] == ["df"]
    assert done.result.state_report["bytes_written"] < 64_000


async def test_two_frames_are_not_one(session):
    await run_source(session, FRAME + "\nother = pd.DataFrame({'a': [1]}); part = df[['a']]")
    done = await run_source(session, "other.shape")
    assert done.result.state_report["loaded"] == ["other"]


async def test_numbers_which_are_not_equal_to_themselves_link_no_frames(session):
    await run_source(
        session,
        "import pandas as pd, numpy as np\n"
        "one = pd.DataFrame({'a': ['x', np.nan]}, dtype=object)\n"
        "other = pd.DataFrame({'a': [np.nan, 'y']}, dtype=object)\n"
        "mine = [float('nan'), float('nan')]",
    )
    done = await run_source(session, "other.shape, mine[0] is mine[1]")
    assert done.result.state_report["loaded"] == ["mine", "other"]


async def test_frames_that_share_memory_part_at_a_write_as_in_one_process(session):
    await run_source(session, FRAME + "\nhead = df.head(); same = df; whole = df[:]")
    await run_source(session, "df.iloc[0, 0] = 99")
    assert (
        await text_of(
            session, "print(head.iloc[0, 0], whole.iloc[0, 0], df.iloc[0, 0], same is df)"
        )
        == "0.0 0.0 99.0 True\n"
    )


async def test_an_untouched_frame_costs_nothing(session):
    await run_source(session, FRAME + "\nx = 0")
    done = await run_source(session, "x += 1")
    assert done.result.state_report["loaded"] == ["x"]
    assert done.result.state_report["bytes_written"] < 4096

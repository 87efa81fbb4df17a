"""Faults by the dice with fixed seeds; `python -m benchmarks.soak` goes on for as long as wanted."""

from __future__ import annotations

import pytest

from .injector import FAULTS, Trial, dice_of

TURNS = 12
SEEDS, MORE = 17, 60  # x TURNS: 204 points, and 720 more with --slow


async def play(data_dir, seed, turns=TURNS):
    dice = dice_of(seed)
    trial = Trial(data_dir, dice)
    await trial.open()
    try:
        for _ in range(turns):
            await trial.turn(dice.choice(FAULTS))
        assert trial.session._log.verify(trial.id) == []
    finally:
        await trial.close()
    return trial


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_alone(fresh_data_dir, fault):
    trial = Trial(fresh_data_dir, dice_of(7))
    await trial.open()
    try:
        await trial.turn("none")
        await trial.turn(fault)
        await trial.turn(fault)
        assert len(trial.acknowledged) >= 1
    finally:
        await trial.close()


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_two_hundred_points(fresh_data_dir, seed):
    await play(fresh_data_dir, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + MORE))
async def test_seven_hundred_more(fresh_data_dir, seed):
    await play(fresh_data_dir, seed)

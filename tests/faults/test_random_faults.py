"""Faults by the dice with fixed seeds; `python -m benchmarks.soak` goes on for as long as wanted."""

from __future__ import annotations

import pytest

from .injector import FAULTS, Trial, dice_of

TURNS = 12
SHORT, LONG = 3, 20  # x TURNS: 36 points by default, 240 with --slow


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


@pytest.mark.parametrize("seed", range(SHORT))
async def test_faults_in_any_order(fresh_data_dir, seed):
    await play(fresh_data_dir, seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(100, 100 + LONG))
async def test_two_hundred_and_forty_points(fresh_data_dir, seed):
    await play(fresh_data_dir, seed)

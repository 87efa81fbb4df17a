"""The load benchmark, small: so many run, so many wait, the rest are told; on both kinds of log."""

from __future__ import annotations

import pytest

from benchmarks.load import run


@pytest.mark.timeout(200)
def test_twelve_clients_on_two_places(fresh_data_dir):
    settings = {
        "data_dir": str(fresh_data_dir),
        "standby": False,
        "max_running": 2,
        "max_queued": 4,
        "engine": "local",
    }
    seen = run(12, 2, 0.3, settings)
    assert seen["problems"] == []
    assert (seen["ran"], seen["refused"], seen["most_at_one_time"]) == (6, 6, 2)
    assert seen["most_waiting"] == 4

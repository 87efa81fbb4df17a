"""The cases from public bug reports, each in a kernel of its own; `run_cases.py` runs them by hand."""

import argparse
import json
import os
from pathlib import Path

import pytest

from . import run_cases

FOLDER = Path(__file__).parent
TIMES = argparse.Namespace(timeout=60, start_timeout=120)


def cases(name):
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        yield pytest.param(
            case, id=case["id"], marks=[pytest.mark.slow] if case.get("slow") else []
        )


@pytest.fixture(scope="module", params=["local", pytest.param("dagger", marks=pytest.mark.dagger)])
def environment(request, data_dir):
    if request.param == "dagger" and not os.environ.get("DAGGER_KERNEL_BASE_PATH"):
        pytest.skip("DAGGER_KERNEL_BASE_PATH names no base")
    return {"DAGGER_KERNEL_DATA_DIR": str(data_dir), "DAGGER_KERNEL_ENGINE": request.param}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("case", [*cases("cases.jsonl")])
def test_case(case, environment, tmp_path):
    work, home = tmp_path / "work", tmp_path / "ipython"
    work.mkdir()
    home.mkdir()
    env = {**os.environ, **environment, "IPYTHONDIR": str(home)}
    run = run_cases.run_nbclient if case.get("driver") == "nbclient" else run_cases.run_client
    with open(tmp_path / "kernel.log", "wb") as log:
        records, context = run(case, "dagger", str(work), env, TIMES, log)
    reasons = [
        f"cell {wanted['cell']} {wanted['kind']}: {reason}"
        for wanted in case["expect"]
        if (reason := run_cases.check(wanted, records.get(wanted["cell"]), context))
    ]
    assert not reasons, (reasons, (tmp_path / "kernel.log").read_text(errors="replace")[-2000:])

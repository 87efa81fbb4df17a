"""The case files: objects are restored right or reported, links are as in one process."""

import json
import sys
from pathlib import Path

import pytest

from .harness import Notebook, holds

FOLDER = Path(__file__).parents[2] / "cases"


def cases(name):
    if not (FOLDER / name).exists():
        return []
    found = [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]
    wanted = [case for case in found if case["area"].startswith("state")]
    return [pytest.param(case, id=case["id"]) for case in wanted if usable(case)]


def usable(case):
    # Python 3.11 has no such syntax; the matrix over interpreters runs it.
    return sys.version_info >= (3, 12) or "PEP695" not in case["summary"]


def check(notebook, case):
    outcomes = notebook.run_all(case["cells"])
    failed = [expectation for expectation in case["expect"] if not holds(expectation, outcomes)]
    assert not failed, (failed, [(o["stdout"], o["ename"], o["evalue"]) for o in outcomes])
    assert not [o["report"]["error"] for o in outcomes if "error" in o["report"]]


@pytest.mark.parametrize("mode", ["zygote", "bare"])
@pytest.mark.parametrize(
    "case", cases("state_objects.jsonl") + cases("state_links.jsonl") + cases("cases.jsonl")
)
def test_case(case, mode, engines, tmp_path):
    check(Notebook(engines(mode), tmp_path), case)


@pytest.mark.parametrize("case", cases("state_links.jsonl")[::4])
def test_case_in_new_interpreters(case, fresh_notebook):
    check(fresh_notebook, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases("state_objects.jsonl") + cases("state_links.jsonl"))
def test_every_case_in_new_interpreters(case, fresh_notebook):
    check(fresh_notebook, case)

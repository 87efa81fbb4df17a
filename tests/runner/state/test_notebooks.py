"""Whole notebooks give the same here as in one process: text, errors, and every final value."""

import json
import re
from pathlib import Path

import pytest

from .harness import Notebook

HERE = Path(__file__).parent
FOLDER = HERE / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "shell_magics")
"""That one is about the shell's histories, which the runner keeps: see `tests/kernel/test_notebooks.py`."""

LAST = (
    "import types as _types\n_digest = _types.ModuleType('digest')\n"
    f"exec(compile(open({str(HERE / 'digest.py')!r}).read(), 'digest', 'exec'), vars(_digest))\n"
    "print('DIGESTS ' + _digest.digest_all(globals()))"
)
LIBRARIES = {
    "classify_sklearn": "sklearn",
    "frames_polars": "polars",
    "graphs_networkx": "networkx",
    "algebra_sympy": "sympy",
    "queries_sql": "duckdb",
    "fitting_scipy": "scipy",
}

LOST = {
    "async_tasks": {"token"},
    "arrays_numpy": {"it"},
    "frames_polars": {"context"},
    "queries_sql": {"link"},
    "words_text": {"writer"},
}
"""What these notebooks make and no later cell can have: it is reported, and never wrong."""


def cells_of(name):
    """The cells of a notebook in the percent format which jupytext reads."""
    text = (FOLDER / f"{name}.py").read_text()
    return [cell.strip("\n") for cell in re.split(r"^# %%\n", text, flags=re.MULTILINE)[1:]]


def split(text):
    """The text and the digests which the last cell printed."""
    shown, _, digests = text.partition("DIGESTS ")
    return shown, json.loads(digests.strip().splitlines()[0])


def compare(notebook, name):
    cells = [*cells_of(name), LAST]
    plain = notebook.home.parent / "plain"
    plain.mkdir()
    expected = notebook.engine.run({"cells": cells, "home": str(plain)})
    got = notebook.run_all(cells)
    lost: set[str] = set()
    for number, (wanted, found) in enumerate(zip(expected, got, strict=True), 1):
        assert found["report"].get("error") is None, found["report"]
        assert found["ename"] == wanted["ename"], (number, found["evalue"], found["stdout"])
        if number < len(cells):
            assert same(found["stdout"]) == same(wanted["stdout"]), number
            lost |= {entry["name"] for entry in found["report"]["lost"]}
    wanted, found = split(expected[-1]["stdout"])[1], split(got[-1]["stdout"])[1]
    assert len(wanted) >= 8
    assert lost <= LOST.get(name, set())
    wanted = {variable: value for variable, value in wanted.items() if variable not in lost}
    found = {variable: value for variable, value in found.items() if variable not in lost}
    assert not [v for v in wanted.values() if v.startswith("not looked at")], wanted
    assert found == wanted, {
        n: (found.get(n), wanted.get(n)) for n in {*found, *wanted} if found.get(n) != wanted.get(n)
    }


def same(text):
    """Text without what differs from run to run: addresses, and the frames of errors."""
    text = text.replace("/plain", "/home")
    text = text.partition("-" * 75)[0]
    return re.sub(r"0x[0-9a-f]{6,}", "0x", text)


@pytest.fixture(params=NAMES)
def name(request):
    if request.param in LIBRARIES:
        pytest.importorskip(LIBRARIES[request.param])
    return request.param


def test_in_forks_of_a_warm_process(name, engines, tmp_path):
    compare(Notebook(engines("zygote"), tmp_path), name)


def test_in_forks_of_a_bare_process(name, engines, tmp_path):
    compare(Notebook(engines("bare"), tmp_path), name)


@pytest.mark.slow
def test_in_new_interpreters(name, engines, tmp_path):
    notebook = Notebook(engines("fresh"), tmp_path)
    compare(notebook, name)

"""The demo's data and notebooks, as committed."""

import csv
import io
from importlib import resources

import nbformat
import pytest

from dagger_kernel.cli.demo import NOTEBOOKS
from dagger_kernel.demo import make_signups

FILES = resources.files("dagger_kernel.demo")


def test_the_sign_ups_are_what_the_script_makes():
    out = io.StringIO()
    rows = make_signups.write(out)
    assert 4_900 <= rows <= 5_100
    assert out.getvalue() == (FILES / "q3-signups.csv").read_text("utf-8")


def test_people_did_sign_up_twice():
    rows = list(csv.DictReader((FILES / "q3-signups.csv").read_text("utf-8").splitlines()))
    written = {row["email"] for row in rows}
    people = {row["email"].strip().lower().replace("+news@", "@") for row in rows}
    assert len(people) < len(written) < len(rows)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_committed_without_outputs(name):
    notebook = nbformat.reads((FILES / f"{name}.ipynb").read_text("utf-8"), 4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "dagger"
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")


def test_the_analysis_shows_what_it_should():
    notebook = nbformat.reads((FILES / "analysis.ipynb").read_text("utf-8"), 4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    text = "\n".join(cell.source for cell in cells)
    assert len(cells) >= 12
    for part in ("%%bash", "uv add", "class ", "def ", "plt.show()"):
        assert part in text
    failing = [cell for cell in cells if "raises-exception" in cell.metadata.get("tags", [])]
    assert len(failing) == 1

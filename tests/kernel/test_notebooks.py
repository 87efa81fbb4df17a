"""Whole notebooks by nbclient: on the kernel as on plain ipykernel, with the same final values."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import uv

from tests.runner.state.test_notebooks import HERE, LOST, cells_of, split

RUN = Path(__file__).with_name("run_notebook.py")
OFTEN = ["sales_frame", "shapes_classes", "shell_magics"]
SELDOM = [
    "arrays_numpy",
    "async_tasks",
    "closures_functions",
    "dates_money",
    "figures_matplotlib",
    "iterators_sim",
    "records_dataclasses",
    "words_text",
]
"""With the three above, those which need no more than the base's packages."""


@pytest.fixture(scope="module")
def plain_python(shared_base, tmp_path_factory):
    """Make the base's project anew without any sandbox, with ipykernel in it; give its Python."""
    project = tmp_path_factory.mktemp("plain")
    base = next(path for path in (shared_base / "bases").iterdir() if (path / "fs").is_dir())
    home = base / "fs/home/sandbox"
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(home / name, project)
    config = (home / ".venv/pyvenv.cfg").read_text()
    minor = ".".join(config.split("version_info = ")[1].split()[0].split(".")[:2])
    python = config.split("home = ")[1].split("\n")[0] + f"/python{minor}"
    command = [
        uv.find_uv_bin(),
        "add",
        "-q",
        "--no-install-project",
        "ipykernel",
        "--python",
        python,
    ]
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        command, cwd=project, env=environ, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return project / ".venv/bin/python"


def notebook_of(name):
    digest = (HERE / "digest.py").read_text()
    last = (
        "import types as _types\n_digest = _types.ModuleType('digest')\n"
        f"exec({digest!r}, vars(_digest))\nprint('DIGESTS ' + _digest.digest_all(globals()))"
    )
    cells = [nbformat.v4.new_code_cell(cell) for cell in [*cells_of(name), last]]
    return nbformat.v4.new_notebook(cells=cells)


def run(kernel, name, place, *python):
    place.mkdir()
    source, target = place / "in.ipynb", place / "out.ipynb"
    nbformat.write(notebook_of(name), source)
    command = [sys.executable, RUN, kernel, source, target, *python]
    environ = os.environ | {"PYTHONHASHSEED": "0"}
    if python:
        del environ["PYTHONPATH"]
    done = subprocess.run(
        command, cwd=place, env=environ, capture_output=True, text=True, check=False, timeout=250
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return nbformat.read(target, 4).cells


def is_file(output):
    return "dagger_kernel" in output.metadata or any("dagger-kernel" in m for m in output.data)


def shown(cell):
    """What a person reads below a cell, without addresses and our list of files."""
    found = []
    for output in cell.outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                continue  # what is not kept is told there
            if found and found[-1][0] == "stdout":
                found[-1] = ("stdout", found[-1][1] + output.text)
            else:
                found.append(("stdout", output.text))
        elif output.output_type == "error":
            found.append((output.ename, output.evalue))
        elif "text/plain" in output.data and not is_file(output):
            found.append((output.output_type, output.data["text/plain"]))
    return re.sub(r"0x[0-9a-f]{6,}", "0x", repr(found))


@pytest.mark.parametrize(
    "name", [*OFTEN, *(pytest.param(name, marks=pytest.mark.slow) for name in SELDOM)]
)
def test_like_plain_ipykernel(name, data_dir, jupyter_environment, plain_python, tmp_path):
    wanted = run("python3", name, tmp_path / "plain", str(plain_python))
    found = run("dagger", name, tmp_path / "ours")
    for number, (one, other) in enumerate(zip(wanted[:-1], found[:-1], strict=True), 1):
        assert shown(other) == shown(one), (number, one.source)
    _, theirs = split(wanted[-1].outputs[0].text)
    _, ours = split(found[-1].outputs[0].text)
    lost = LOST.get(name, set())
    assert {n: v for n, v in ours.items() if n not in lost} == {
        n: v for n, v in theirs.items() if n not in lost
    }

"""The demo notebooks give on our kernel what they give on plain ipykernel: texts, charts, files."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import nbformat
import pytest
import uv

from dagger_kernel.cli.demo import NOTEBOOKS

ROOT = Path(__file__).resolve().parents[2]
FILES_MIME = "application/vnd.dagger-kernel.files+json"
PROJECT_FILES = {"pyproject.toml", "uv.lock"}


@pytest.fixture(scope="module")
def demo(shared_base, tmp_path_factory):
    """What `make demo` runs, with the base of the other tests."""
    from tests.conftest import borrow_base

    place = tmp_path_factory.mktemp("demo")
    data_dir = borrow_base(shared_base, place / "data")
    environ = os.environ | {"DAGGER_KERNEL_DATA_DIR": str(data_dir), "PYTHONPATH": str(ROOT)}
    start = [sys.executable, "-c", "from dagger_kernel.cli import main; main()"]
    subprocess.run([*start, "install", "--prefix", str(place)], env=environ, check=True)
    environ["JUPYTER_PATH"] = str(place / "share/jupyter")
    done = subprocess.run(
        [*start, "demo", "--directory", str(place / "out"), "--json"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    return {one["name"]: one for one in report["notebooks"]} | {"environ": environ, "place": place}


@pytest.fixture(scope="module")
def plain(shared_base, tmp_path_factory):
    """The base's project and packages without any sandbox, and ipykernel in it."""
    project = tmp_path_factory.mktemp("plain")
    (base,) = [path for path in (shared_base / "bases").iterdir() if (path / "fs").is_dir()][:1]
    home = base / "fs/home/sandbox"
    for name in PROJECT_FILES:
        shutil.copy(home / name, project)
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environ["PATH"] = f"{project}/.venv/bin{os.pathsep}{environ['PATH']}"
    version = (home / ".venv/pyvenv.cfg").read_text().split("version_info = ")[1].split()[0]
    minor = ".".join(version.split(".")[:2])
    python = (home / ".venv/pyvenv.cfg").read_text().split("home = ")[1].split("\n")[0]
    command = [uv.find_uv_bin(), "add", "--quiet", "--no-install-project", "ipykernel"]
    command += ["--python", f"{python}/python{minor}"]
    done = subprocess.run(
        command, cwd=project, env=environ, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return project, environ


def _run_plain(name, project, environ):
    source = resources.files("dagger_kernel.demo")
    (project / "attachments").mkdir(exist_ok=True)
    for file in NOTEBOOKS[name]:
        (project / "attachments" / file).write_bytes((source / file).read_bytes())
    target = project / f"{name}.ipynb"
    script = Path(__file__).with_name("run_plain.py")
    command = [sys.executable, script, project / ".venv/bin/python", source / target.name, target]
    done = subprocess.run(
        command, cwd=project, env=environ, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return nbformat.read(target, 4)


def _texts(cell):
    """Return what a person reads below a cell; streams joined, our list of files left out."""
    shown = []
    for output in cell.outputs:
        kind = output.output_type
        if kind == "stream":
            if shown and shown[-1][0] == output.name:
                shown[-1] = (output.name, shown[-1][1] + output.text)
            else:
                shown.append((output.name, output.text))
        elif kind == "error":
            # Colours say how a line was cut into tokens, which is not text.
            trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback))
            shown.append((output.ename, output.evalue, trace))
        elif FILES_MIME not in output.data and "file" not in output.metadata.get(
            "dagger_kernel", {}
        ):
            shown.append((kind, output.data.get("text/plain"), output.data.get("text/html")))
    return shown


def _charts(cell):
    return [
        output.data["image/png"].strip()
        for output in cell.outputs
        if "image/png" in output.get("data", {})
        and "file" not in output.metadata.get("dagger_kernel", {})
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_same_as_plain_ipykernel(demo, plain, name):
    project, environ = plain
    theirs = _run_plain(name, project, environ)
    ours = nbformat.read(demo[name]["notebook"], 4)
    charts = 0
    for our_cell, their_cell in zip(ours.cells, theirs.cells, strict=True):
        if our_cell.cell_type != "code":
            continue
        assert our_cell.execution_count == their_cell.execution_count
        assert _texts(our_cell) == _texts(their_cell), our_cell.source
        assert _charts(our_cell) == _charts(their_cell), our_cell.source
        charts += len(_charts(our_cell))
    assert charts == 1
    exported = {path.rpartition(f"/files/{name}/")[2]: Path(path) for path in demo[name]["files"]}
    assert exported
    for path, file in exported.items():
        if path not in PROJECT_FILES:
            assert file.read_bytes() == (project / path).read_bytes(), path


def test_files_are_what_the_story_promises(demo):
    names = {Path(path).name for path in demo["signups"]["files"]}
    assert names == {"signups-by-week.png", "q3-signups-deduped.csv"}
    (chart,) = [path for path in demo["signups"]["files"] if path.endswith(".png")]
    assert Path(chart).read_bytes().startswith(b"\x89PNG")


def test_the_kernels_work_is_in_the_log(demo):
    def ask(*args):
        command = [sys.executable, "-c", "from dagger_kernel.cli import main; main()", *args]
        done = subprocess.run(command, env=demo["environ"], capture_output=True, check=True)
        return json.loads(done.stdout)

    steps = ask("log", demo["signups"]["sandbox"], "--json")["steps"]
    assert [step["kind"] for step in steps] == ["upload"] + ["cell"] * 7
    statuses = [
        step["result"]["status"]
        for step in ask("log", demo["analysis"]["sandbox"], "--json")["steps"]
    ]
    assert statuses.count("error") == 1
    assert statuses.count("ok") == len(statuses) - 1
    assert ask("check", "--json")["ok"]


def test_the_sandbox_goes_on_when_every_layer_is_gone(demo):
    shutil.rmtree(demo["place"] / "data/layers")
    code = (
        "import sys; from dagger_kernel import Sandbox\n"
        "with Sandbox.open(sys.argv[1]) as sandbox:\n"
        "    done = sandbox.run('len(clean), clean.email.is_unique')\n"
        "    print(done.text, done.drift)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, demo["signups"]["sandbox"]],
        env=demo["environ"],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.stdout == "(4423, True) []\n", done.stderr

"""The wheel has what a user needs: kernels, migrations, demo; and nothing else."""

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built as pip builds it; hatchling comes from the index."""
    target = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "-w",
        str(target),
        str(ROOT),
    ]
    # The panel's build needs Node and is tested with it.
    environ = os.environ | {"SKIP_JUPYTER_BUILDER": "1"}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    (path,) = target.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize("kernel", ["dagger", "dagger-bash"], ids=["python", "bash"])
def test_kernelspecs_are_wheel_data(wheel, names, kernel):
    folder = next(name.split("/")[0] for name in names if ".data/" in name)
    place = f"{folder}/data/share/jupyter/kernels/{kernel}"
    for name in ("kernel.json", "logo-svg.svg", "logo-32x32.png", "logo-64x64.png"):
        assert f"{place}/{name}" in names
    with zipfile.ZipFile(wheel) as archive:
        spec = json.loads(archive.read(f"{place}/kernel.json"))
    # Jupyter replaces "python" by the interpreter of the environment it is installed in.
    assert spec["argv"][0] == "python"
    assert spec["interrupt_mode"] == "message"
    assert "debugger" not in spec.get("metadata", {})


def test_every_module_and_data_file_is_in_it(names):
    listed = subprocess.run(
        ["git", "ls-files", "-z", "dagger_kernel"], cwd=ROOT, capture_output=True, check=False
    ).stdout.decode()
    if not listed:
        pytest.skip("not a git checkout")
    missing = {name for name in listed.split("\0") if name} - names
    assert not {name for name in missing if (ROOT / name).exists()}


def test_migrations_and_demo_are_in_it(names):
    assert any(name.startswith("dagger_kernel/log/migrations/") for name in names)
    for name in ("signups.ipynb", "analysis.ipynb", "q3-signups.csv"):
        assert f"dagger_kernel/demo/{name}" in names
    assert "dagger_kernel/py.typed" in names


def test_nothing_else_is_in_it(names):
    for name in names:
        assert name.startswith("dagger_kernel"), name
        assert "__pycache__" not in name
        assert "/tests/" not in name


def test_pip_install_alone_registers_the_kernels(wheel, tmp_path):
    """Without the dependencies: what pip puts where is the question, not whether it runs."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env/bin/python"
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--no-deps",
        "-q",
        str(wheel),
    ]
    subprocess.run(command, check=True, timeout=120)
    for kernel in ("dagger", "dagger-bash"):
        assert (tmp_path / f"env/share/jupyter/kernels/{kernel}/kernel.json").is_file()
    version = subprocess.run(
        [tmp_path / "env/bin/dagger-kernel", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.startswith("dagger-kernel ")


def test_constraints_fit_the_project():
    """Every dependency is pinned, to a version it allows, without addresses."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    text = (ROOT / "constraints.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert "://" not in text
    assert "--" not in text.replace("--universal", "")
    pins = {}
    for line in lines:
        pin = Requirement(line)
        (only,) = pin.specifier
        assert only.operator == "=="
        pins.setdefault(canonicalize_name(pin.name), []).append(only.version)
    extras = PROJECT["project"]["optional-dependencies"].values()
    for line in [
        *PROJECT["project"]["dependencies"],
        *(line for extra in extras for line in extra),
    ]:
        needed = Requirement(line)
        if needed.name == PROJECT["project"]["name"]:
            continue  # an extra of our own
        versions = pins[canonicalize_name(needed.name)]
        assert all(version in needed.specifier for version in versions), line


def test_the_kernels_in_the_source_tree_are_the_shipped_ones():
    from dagger_kernel.cli.install import SPECS

    shared = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    for name, folder in SPECS.items():
        assert shared[f"kernelspec/{folder}"] == f"share/jupyter/kernels/{name}"
        spec = json.loads((ROOT / "kernelspec" / folder / "kernel.json").read_text("utf-8"))
        assert spec["kernel_protocol_version"] == "5.5"


def test_the_version_is_said_once():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert os.path.exists(ROOT / PROJECT["tool"]["hatch"]["version"]["path"])

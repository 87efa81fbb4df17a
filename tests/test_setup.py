"""The two commands' first step says what is missing and what to do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def checkout(tmp_path):
    """The files that deciding and installing need."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("scripts", "kernelspec"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def _make(target, checkout, **variables):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(
        ["make", "--no-print-directory", target],
        cwd=checkout,
        env=environ | variables,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=120,
    )


def test_help_lists_every_target(checkout):
    shown = _make("help", checkout).stdout
    for target in ("demo", "test", "lint", "bench", "clean"):
        assert f"make {target}" in shown


def test_no_python(checkout):
    ran = _make("demo", checkout, PYTHON="/no/such/python")
    assert ran.returncode != 0
    assert "Python 3.11 or newer was not found" in ran.stderr
    assert "make PYTHON=" in ran.stderr


def test_a_python_that_is_too_old(checkout):
    old = checkout / "python-old"
    old.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'Python 3.9.2'\nexit 1\n")
    old.chmod(0o755)
    assert "Python 3.9.2" in _make("demo", checkout, PYTHON=str(old)).stderr


def test_no_venv_module(checkout):
    (checkout / "fake").mkdir()
    (checkout / "fake/venv.py").write_text("raise ImportError")
    ran = _make("demo", checkout, PYTHONPATH=str(checkout / "fake"))
    assert "no venv module" in ran.stderr
    assert "python3-venv" in ran.stderr


def test_no_package_index(checkout):
    ran = _make("demo", checkout, PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0")
    assert ran.returncode != 0
    for hint in ("PIP_INDEX_URL", "HTTPS_PROXY", "PIP_CERT"):
        assert hint in ran.stderr.rpartition("make: the packages could not be installed")[2]
    assert not list(checkout.glob(".venv/.stamp*"))


def test_nothing_is_done_twice(checkout):
    """With the stamp there, the script ends before it touches anything."""
    (checkout / ".venv/bin").mkdir(parents=True)
    environ = dict(os.environ)
    traced = subprocess.run(
        ["sh", "-x", "scripts/setup.sh"],
        cwd=checkout,
        env=environ | {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    (stamp,) = {
        line.partition("stamp=")[2] for line in traced.stderr.splitlines() if "+ stamp=" in line
    }
    (checkout / stamp).touch()
    assert _make("demo", checkout).returncode != 0  # it goes on to run what a stamp promises
    again = subprocess.run(
        ["scripts/setup.sh"], cwd=checkout, env=environ, capture_output=True, text=True, check=False
    )
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["scripts/setup.sh", "scripts/environment.sh", ".ci/run"])
def test_scripts_parse(name):
    shell = "bash" if name == ".ci/run" else "sh"
    subprocess.run([shell, "-n", ROOT / name], check=True)

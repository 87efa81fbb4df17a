"""What Binder reads, and its honest first screen."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

BINDER = Path(__file__).resolve().parents[1] / "binder"


def test_the_environment_pins_a_python_that_is_new_enough():
    environment = yaml.safe_load((BINDER / "environment.yml").read_text("utf-8"))
    (python,) = [line for line in environment["dependencies"] if line.startswith("python ")]
    assert re.search(r">=3\.1[1-9]", python)


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_scripts_can_run(name):
    path = BINDER / name
    assert path.stat().st_mode & stat.S_IXUSR
    subprocess.run(["bash", "-n", path], check=True)


@pytest.mark.parametrize("code", [0, 1])
def test_the_first_screen_says_what_works(tmp_path, code):
    (tmp_path / "bin").mkdir()
    doctor = tmp_path / "bin/dagger-kernel"
    doctor.write_text(f"#!/bin/sh\necho 'missing  local engine  It says no.'\nexit {code}\n")
    doctor.chmod(0o755)
    page = tmp_path / "START-HERE.md"
    page.write_text("works")
    environ = os.environ | {"PATH": f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [BINDER / "start", "echo", "started"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"started\n"
    if code:
        assert page.read_text().startswith("# This machine cannot run sandboxes")
        assert "It says no." in page.read_text()
    else:
        assert page.read_text() == "works"

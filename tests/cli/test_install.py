"""``dagger-kernel install``: Jupyter sees the kernels afterwards."""

import json
import os
import subprocess
import sys

import pytest
from jupyter_client.kernelspec import KernelSpecManager

NAMES = {"dagger": "Python (Dagger sandbox)", "dagger-bash": "Bash (Dagger sandbox)"}


def test_below_a_prefix(cli, environment):
    ran = cli("install", "--prefix", environment / "prefix")
    assert ran.code == 0
    specs = KernelSpecManager(kernel_dirs=[str(environment / "prefix/share/jupyter/kernels")])
    for name, shown in NAMES.items():
        spec = specs.get_kernel_spec(name)
        assert spec.display_name == shown
        assert spec.argv[0] == sys.executable
        assert "{connection_file}" in spec.argv
        assert spec.interrupt_mode == "message"
        assert (environment / f"prefix/share/jupyter/kernels/{name}/logo-svg.svg").is_file()


def test_for_the_user(process, environment):
    ran = process("install", "--user", "--json")
    installed = {one["name"]: one["path"] for one in ran.json["installed"]}
    assert set(installed) == set(NAMES)
    for path in installed.values():
        assert path.startswith(str(environment / "home"))
    # A Jupyter elsewhere finds them, whatever environment it runs in.
    listed = subprocess.run(
        [sys.executable, "-m", "jupyter", "kernelspec", "list", "--json"],
        capture_output=True,
        check=True,
        env=os.environ | {"JUPYTER_PREFER_ENV_PATH": "0"},
    )
    found = json.loads(listed.stdout)["kernelspecs"]
    assert {name: found[name]["resource_dir"] for name in NAMES} == installed


def test_again_replaces(cli, environment):
    for _ in range(2):
        assert cli("install", "--prefix", environment / "prefix").code == 0


def test_variables(cli, environment):
    cli("install", "--prefix", environment, "--env", "A=1", "--env", "B=x=y")
    spec = json.loads((environment / "share/jupyter/kernels/dagger/kernel.json").read_text())
    assert spec["env"] == {"A": "1", "B": "x=y"}


@pytest.mark.parametrize("args", [["--user", "--sys-prefix"], ["--env", "novalue"]])
def test_wrong_usage(cli, args):
    assert cli("install", *args).code == 2


def test_a_place_that_cannot_be_written(process, environment):
    (environment / "file").write_text("in the way")
    ran = process("install", "--prefix", str(environment / "file"))
    assert ran.code not in (0, 70)
    assert "Traceback" not in ran.err

"""Every command, option and exit code is in ``docs/cli.md``."""

import re
from pathlib import Path

import pytest
import typer

from dagger_kernel.cli.app import app
from dagger_kernel.cli.exits import ExitCode

TEXT = (Path(__file__).resolve().parents[2] / "docs/cli.md").read_text("utf-8")
COMMANDS = typer.main.get_command(app).commands


def _section(name):
    return re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL).group(1)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_section_with_its_options(name):
    section = _section(name)
    assert f"$ dagger-kernel {name}" in section
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "argument":
            assert parameter.name.upper() in section
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("--") and option not in ("--json", "--help"):
                assert option in section, f"{name} {option}"


def test_sections_are_commands():
    titles = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert set(titles) - {"Exit codes"} == set(COMMANDS)


def test_exit_codes_are_listed():
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}
    assert listed == {code.value for code in ExitCode}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_json(name):
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert "--json" in options

"""Shell commands of a cell: ``!command``, ``%pip``, ``!pip``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys

from .streams import flush

PIP = re.compile(r"^\s*(?:(?:\S*/)?python[\d.]*\s+-m\s+pip|pip[\d.]*)(?=\s|$)")

MEANINGLESS = re.compile(
    r"\s--(?:user|no-input|no-warn-script-location|no-warn-conflicts|prefer-binary|use-pep517"
    r"|disable-pip-version-check|no-python-version-warning)(?=\s|$)"
    r"|\s--(?:root-user-action|progress-bar|upgrade-strategy|timeout|retries|exists-action"
    r"|use-deprecated|use-feature)(?:=|\s+)\S+"
)
"""Options of pip that uv refuses, and that mean nothing here."""

COMMAND = re.compile(r"((?:\s+-\S+)*)\s*(\S*)(.*)", re.DOTALL)
"""Options, a command, and its arguments."""


def shell_path() -> str:
    """Return the shell that runs commands."""
    return os.environ.get("SHELL") or shutil.which("bash") or "/bin/sh"


def rewrite_pip(command: str) -> str:
    """Let ``pip ...`` mean ``uv pip ...`` where the environment has uv and no pip."""
    found = PIP.match(command)
    if not found or not shutil.which("uv"):
        return command
    if shutil.which("pip") and _has_pip():
        return command
    return uv_pip(command[found.end() :])


def _has_pip() -> bool:
    """Whether this interpreter can run pip itself."""
    return importlib.util.find_spec("pip") is not None


def uv_pip(arguments: str) -> str:
    """Return the uv command for pip's arguments, on this interpreter's environment."""
    pip, *others = re.split(r"(?=[;&|])", arguments, maxsplit=1)
    pip = re.sub(
        r"\s(?:-I|--ignore-installed)(?=\s|$)", " --reinstall", MEANINGLESS.sub("", f" {pip}")
    )
    found = COMMAND.match(pip)
    assert found is not None
    options, name, rest = found.groups()
    if "--version" in options or "-V" in options.split():
        return "uv --version" + "".join(others)
    command = f"uv pip {name or '--help'}"
    if name in ("install", "uninstall", "list", "show", "freeze", "check", "tree"):
        command += f" --python {shlex.quote(sys.executable)}"
    if name == "install":
        # Files compiled now are read from the layer in every later step.
        command += " --compile-bytecode"
    if name == "uninstall":
        rest = re.sub(r"\s(-y|--yes)\b", "", rest)
    return " ".join([command, *options.split()]) + rest + "".join(others)


def run_command(command: str) -> int:
    """Run a command; its output goes straight to the cell's descriptors.

    Returns
    -------
    int
        The exit code; the negative signal number when a signal ended it.
    """
    flush()
    code = subprocess.call(rewrite_pip(command), shell=True, executable=shell_path())  # noqa: S602
    # Packages may have come.
    importlib.invalidate_caches()
    # A shell reports a signal of its child as 128 + its number.
    return 128 - code if code > 128 else code

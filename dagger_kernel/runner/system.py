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
    words = arguments.split()
    command = f"uv pip {words[0] if words else '--help'}"
    rest = arguments.strip()[len(words[0]) :] if words else ""
    if words and words[0] in ("install", "uninstall", "list", "show", "freeze", "check", "tree"):
        command += f" --python {shlex.quote(sys.executable)}"
    if words and words[0] == "install":
        # Files compiled now are read from the layer in every later step.
        command += " --compile-bytecode"
    if words and words[0] == "uninstall":
        rest = re.sub(r"\s(-y|--yes)\b", "", rest)
    return command + rest


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

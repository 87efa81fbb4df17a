"""Find the Python that a base stands on: Python 3.12 where one works, else the running interpreter."""

from __future__ import annotations

import functools
import glob
import json
import os
import shutil
import subprocess
import sys

from ...errors import SettingError
from .container import Interpreter

PREFERRED = "3.12"
_ASK = (
    "import sys, json, ctypes, ssl, sqlite3, zlib; "
    "print(json.dumps([sys.version.split()[0], sys.base_prefix, sys._base_executable]))"
)


@functools.cache
def find_interpreter(wanted: str = "") -> Interpreter:
    """Return the interpreter of the base.

    Parameters
    ----------
    wanted
        The setting ``python``: a path or command; empty: choose.

    Raises
    ------
    SettingError
        The wanted interpreter does not run, or is older than Python 3.11.
    """
    if wanted:
        found = _inspect(shutil.which(wanted) or wanted)
        if found is None or _minor(found) < 11:
            raise SettingError("python", wanted, "a working Python 3.11 or newer")
        return found
    for candidate in _candidates():
        found = _inspect(candidate)
        if found is not None and found.version.startswith(PREFERRED + "."):
            return found
    running = _inspect(sys.executable)
    assert running is not None
    return running


def _candidates() -> list[str]:
    """Return where Python 3.12 may be; shims that do not work are sorted out by running them."""
    name = f"python{PREFERRED}"
    places = [os.path.join(p, name) for p in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    managed = os.path.expanduser("~/.local/share/uv/python")
    places += glob.glob(f"{pyenv}/versions/{PREFERRED}*/bin/{name}")
    places += glob.glob(f"{managed}/cpython-{PREFERRED}*/bin/{name}")
    places += [f"/usr/bin/{name}", f"/usr/local/bin/{name}"]
    return [place for place in dict.fromkeys(places) if os.access(place, os.X_OK)]


def _inspect(executable: str) -> Interpreter | None:
    try:
        done = subprocess.run(
            [executable, "-I", "-c", _ASK], capture_output=True, timeout=20, check=True
        )
        version, prefix, real = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Interpreter(os.path.realpath(real), os.path.realpath(prefix), version)


def _minor(interpreter: Interpreter) -> int:
    return int(interpreter.version.split(".")[1])

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
from ..memory import Memory
from .container import Interpreter

PREFERRED = "3.12"
_ASK = (
    "import sys, json, ctypes, ssl, sqlite3, zlib; "
    "print(json.dumps([sys.version.split()[0], sys.base_prefix, sys._base_executable]))"
)


@functools.cache
def find_interpreter(wanted: str = "", memory: Memory | None = None) -> Interpreter:
    """Return the interpreter of the base.

    Parameters
    ----------
    wanted
        The setting ``python``: a path or command; empty: choose.
    memory
        Keeps what was found, so that the next kernel starts no Python to ask it (0.2 s).

    Raises
    ------
    SettingError
        The wanted interpreter does not run, or is older than Python 3.11.
    """
    if wanted:
        found = _inspect(shutil.which(wanted) or wanted, memory)
        if found is None or _minor(found) < 11:
            raise SettingError("python", wanted, "a working Python 3.11 or newer")
        return found
    for candidate in _candidates():
        found = _inspect(candidate, memory)
        if found is not None and found.version.startswith(PREFERRED + "."):
            return found
    running = _inspect(sys.executable, memory)
    assert running is not None
    return running


def _candidates() -> list[str]:
    """Return where Python 3.12 may be; shims that do not work are sorted out by running them, last."""
    name = f"python{PREFERRED}"
    places = [os.path.join(p, name) for p in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    managed = os.path.expanduser("~/.local/share/uv/python")
    places += glob.glob(f"{pyenv}/versions/{PREFERRED}*/bin/{name}")
    places += glob.glob(f"{managed}/cpython-{PREFERRED}*/bin/{name}")
    places += [f"/usr/bin/{name}", f"/usr/local/bin/{name}"]
    return sorted((p for p in dict.fromkeys(places) if os.access(p, os.X_OK)), key=_is_script)


def _is_script(place: str) -> bool:
    with open(place, "rb") as file:
        return file.read(2) == b"#!"


def _inspect(executable: str, memory: Memory | None) -> Interpreter | None:
    """Ask an interpreter what it is, or remember; None if it does not work."""
    try:
        status = os.stat(executable)
    except OSError:
        return None
    stamp = f"{executable} {os.path.realpath(executable)} {status.st_size} {status.st_mtime_ns}"
    if memory is not None and (known := memory.get(stamp)) is not None:
        return Interpreter(*known)
    try:
        done = subprocess.run(
            [executable, "-I", "-c", _ASK], capture_output=True, timeout=20, check=True
        )
        version, prefix, real = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    found = Interpreter(os.path.realpath(real), os.path.realpath(prefix), version)
    if memory is not None and not _is_script(executable):
        # A script may lead elsewhere tomorrow.
        memory.put(stamp, [found.executable, found.prefix, found.version])
    return found


def _minor(interpreter: Interpreter) -> int:
    return int(interpreter.version.split(".")[1])

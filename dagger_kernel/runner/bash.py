"""Steps in the Bash language.

Each cell is one bash. What a terminal would remember from one command to the next is written to files
when it exits and read when the next one starts: directory, variables, functions, aliases, options
and the exit code.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
from typing import Any

from .display import Outlet
from .interrupts import Interrupts
from .limits import LimitReached
from .mime import cut
from .page import ENDING
from .state.withheld import LEAST
from .streams import flush
from .verdict import ending

FOLDER = "bash"
STATE = "state.sh"

PART = re.compile(
    rb"^alias [^\n=]*='(?:[^']|'\\'')*'\n|^[^\n]+ \(\) \n\{ \n.*?^\}\n|[^\n]*\n",
    re.MULTILINE | re.DOTALL,
)
"""One alias, function or line of the state."""

PROGRAM = r"""
shopt -s expand_aliases
__dk_exit() {
  __dk_code=$?
  __dk_flags=$-
  set +e
  __dk_set=$(set +o | grep -v -E ' (errexit|nounset|noglob|xtrace|monitor|history|interactive-comments|emacs|vi|posix)$')
  trap - DEBUG ERR
  [[ $(trap -p EXIT) == *__dk_exit* ]] && trap - EXIT
  set +eux +o pipefail +o noclobber
  {
    printf 'cd -- %q 2>/dev/null\n' "$PWD"
    shopt -p
    alias -p
    declare -f
    declare -F | grep '^declare -fx'
    declare -p | __dk_variables
    printf '__dk_code=%d\n__dk_flags=%q\n__dk_options=%q\n' "$__dk_code" "$__dk_flags" "$__dk_set"
  } > "$__dk_state.new" 2>/dev/null && mv -f -- "$__dk_state.new" "$__dk_state"
  exit "$__dk_code"
}
__dk_variables() {
  # Bash quotes line breaks in values, so that one line is one variable.
  grep -a -v -E '^declare -[a-zA-Z-]*r|^declare -[a-zA-Z-]+ (BASH[A-Z_]*|COMP_[A-Z]+|DIRSTACK|EPOCH[A-Z]+|EUID|FUNCNAME|GROUPS|LINENO|OLDPWD|PIPESTATUS|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_|__dk_[a-z]+)(=|$)'
}
__dk_last() { return "$__dk_code"; }
__dk_restore() {
  # Options last: they would disturb what comes before.
  eval "$__dk_options"
  case $__dk_flags in *u*) set -u ;; esac
  case $__dk_flags in *f*) set -f ;; esac
  case $__dk_flags in *e*) set -e ;; esac
}
trap __dk_exit EXIT
"""


def folder(state_dir: str) -> str:
    """Return (and make) the directory of bash's state."""
    path = os.path.join(state_dir, FOLDER)
    os.makedirs(path, exist_ok=True)
    return path


def program(state_dir: str, source_path: str) -> str:
    """Return what bash is started with: restore, then the cell.

    The cell is sourced from a file of its own, so that its line numbers are right in messages, and the exit
    code of the cell before is what ``$?`` starts with.
    """
    state = shlex.quote(os.path.join(folder(state_dir), STATE))
    cell = shlex.quote(source_path)
    return "\n".join(
        [
            "__dk_code=0; __dk_flags=; __dk_options=",
            f"[ -r {state} ] && . {state} >/dev/null 2>&1",
            f"__dk_state={state}",
            PROGRAM,
            "__dk_restore",
            # Under `set -e` a plain call that fails would end the shell here.
            f"if [ $__dk_code = 0 ]; then . {cell}; else __dk_last || . {cell}; fi",
        ]
    )


def run_step(
    step: dict[str, Any], interrupts: Interrupts, state_dir: str, home: str
) -> dict[str, Any]:
    """Run one cell by bash; return what ``done`` tells of it."""
    from .bash_asks import help_wanted

    source = str(step.get("source", ""))
    if (wanted := help_wanted(source)) is not None:
        return _help(*wanted, state_dir)
    source_path = os.path.join(folder(state_dir), "cell")
    with open(source_path, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(source + "\n")
    bash = shutil.which("bash") or "/bin/bash"
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    error: BaseException | None = None
    code = 1
    flush()
    try:
        interrupts.start()
        code = subprocess.call(
            [bash, "--noprofile", "--norc", "-c", program(state_dir, source_path), "bash"],
            env=environ,
            cwd=home,
        )
    except BaseException as caught:
        error = caught
    interrupts.page.phase = ENDING
    with contextlib.suppress(OSError):
        os.unlink(source_path)
    if error is None and code == 0:
        return {"status": "ok", "exit_code": 0}
    return _failed(error, code)


def forget(state_dir: str, lent: dict[str, str]) -> None:
    """Take what was lent to one cell out of bash's state: the variables, and whatever holds their values."""
    if not lent:
        return
    path = os.path.join(state_dir, FOLDER, STATE)
    with contextlib.suppress(OSError):
        with open(path, "rb") as state:
            parts = PART.findall(state.read())
        names = tuple(b" %s=" % os.fsencode(name) for name in lent)
        forms = [_bare(form) for value in lent.values() for form in _forms(value)]
        values = [form for form in forms if len(form) >= LEAST]
        kept = [
            part
            for part in parts
            if not (part.startswith(b"declare -") and any(name in part for name in names))
            and not any(value in _bare(part) for value in values)
        ]
        with open(path + ".new", "wb") as state:
            state.writelines(kept)
        os.replace(path + ".new", path)


def _forms(value: str) -> tuple[bytes, bytes]:
    """Return a value as it is, and with its line breaks as bash quotes them."""
    return os.fsencode(value), os.fsencode(value.replace("\n", "\\n"))


def _bare(text: bytes) -> bytes:
    """Return text without what bash quotes with."""
    return text.translate(None, b"\\'\"")


def _help(word: str, full: bool, state_dir: str) -> dict[str, Any]:
    """Show what a command is in the client's pager, as ``name?`` does in Python."""
    from .bash_asks import describe

    text = describe(word, state_dir, full=full)
    if not text:
        print(f"Command `{word}` not found.")
        return {"status": "ok", "exit_code": 0}
    page = {"source": "page", "data": {"text/plain": text}, "start": 0}
    return {"status": "ok", "exit_code": 0, "payloads": [page]}


def _failed(error: BaseException | None, code: int) -> dict[str, Any]:
    """Show how a cell failed and say so."""
    if error is None:
        name, text, status = "ExitCode", ending(code), "error"
    else:
        name, text = type(error).__name__, cut(str(error), 8192)
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
        code = 130 if status == "interrupted" else 1
        if isinstance(error, LimitReached):
            status = "limit"
    line = f"\x1b[31m{name}\x1b[39m: {text}" if text else f"\x1b[31m{name}\x1b[39m"
    Outlet.send({"type": "error", "ename": name, "evalue": text, "traceback": [line]})
    return {
        "status": status,
        "reason": getattr(error, "reason", ""),
        "exit_code": code,
        "shown": True,
    }

"""Questions about Bash code: completion, inspection, is_complete.

What is asked of a state is asked of a bash that has read it; no command of the user's runs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from typing import Any

from .bash import STATE, folder

SECONDS = 4
"""Time that bash may take for an answer."""

BREAKS = " \t\n;|&(<>=`\"'"
"""What ends a word."""

VARIABLE = re.compile(r"\$\{?[#!]?(\w+)")
ASSIGNMENT = re.compile(r"\w+\+?=")
OPENERS = frozenset(
    ("if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "env", "exec")
)
"""Words in front of a command."""

HELP = re.compile(r"\s*(?:(\?\??)\s*([\w./+:-]+)|([\w./+:-]+)(\?\??))\s*")

DESCRIBE = r"""
if [ "$2" = variable ]; then builtin declare -p -- "$1" 2>/dev/null; builtin exit; fi
kind=$(builtin type -t -- "$1") || { builtin declare -p -- "$1" 2>/dev/null; builtin exit; }
builtin type -a -- "$1"
case $kind in
  builtin|keyword) builtin echo; builtin help -- "$1" ;;
  file) [ "$2" = full ] && builtin type -P man >/dev/null && MANWIDTH=80 man -P cat -- "$1" ;;
esac 2>/dev/null
"""


def answer(kind: str, content: dict[str, Any], state_dir: str) -> dict[str, Any]:
    """Answer a question about Bash code."""
    from .asks import empty

    code = str(content.get("code", ""))
    if kind == "is_complete":
        return is_complete(code)
    position = content.get("cursor_pos")
    position = len(code) if position is None else max(0, min(int(position), len(code)))
    if kind == "complete":
        return complete_code(code, position, state_dir)
    if kind == "inspect":
        full = bool(content.get("detail_level"))
        for word in words_at(code, position):
            if text := describe(word, state_dir, full=full):
                data = {"text/plain": text}
                return {"status": "ok", "found": True, "data": data, "metadata": {}}
    return empty(kind, content)


def words_at(code: str, position: int) -> list[str]:
    """Return the word at the cursor and, behind it, the command it is an argument of."""
    start, end = position, position
    while start and code[start - 1] not in BREAKS:
        start -= 1
    while end < len(code) and code[end] not in BREAKS:
        end += 1
    command = re.split(r"[\n;|&(`]", code[:start])[-1].split()
    while command and (command[0] in OPENERS or ASSIGNMENT.match(command[0])):
        del command[0]
    return [word for word in (code[start:end].strip("){}"), *command[:1]) if word]


def describe(word: str, state_dir: str, *, full: bool = False) -> str:
    """Return what bash knows of a command, function, alias or variable; empty if nothing."""
    variable = VARIABLE.match(word)
    name = variable[1] if variable else word
    mode = "variable" if variable else "full" if full else "short"
    return ask_bash(DESCRIBE, state_dir, name, mode).strip()


def help_wanted(source: str) -> tuple[str, bool] | None:
    """Return what a cell like ``cd?`` asks for, and whether for all of it (``cd??``)."""
    if (found := HELP.fullmatch(source)) is None:
        return None
    return found[2] or found[3], len(found[1] or found[4]) == 2


def ask_bash(script: str, state_dir: str, *words: str) -> str:
    """Return what a script prints in a bash with the tip's variables, functions and aliases."""
    state = shlex.quote(os.path.join(folder(state_dir), STATE))
    script = f"[ -r {state} ] && . {state} >/dev/null 2>&1; {script}"
    bash = shutil.which("bash") or "/bin/bash"
    done = subprocess.run(
        [bash, "--noprofile", "--norc", "-c", script, "bash", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace")


def complete_code(code: str, position: int, state_dir: str) -> dict[str, Any]:
    """Complete the word at the cursor: commands, variables, or files."""
    before = code[:position]
    start = max(before.rfind(mark) for mark in BREAKS) + 1
    word = before[start:]
    first = not before[:start].strip() or before[:start].rstrip()[-1:] in (";", "|", "&", "(", "\n")
    if word.startswith("$"):
        action, prefix, word = "-v", "$", word[1:]
        if word.startswith("{"):
            prefix, word = "${", word[1:]
    else:
        action, prefix = ("-c -f" if first and "/" not in word else "-f"), ""
    found = ask_bash(f'compgen {action} -- "$1"', state_dir, word)
    words = sorted(set(found.splitlines()))
    words = [item for item in words if not item.startswith("__dk_")]
    return {
        "status": "ok",
        "matches": [prefix + item for item in words[:500]],
        "cursor_start": start,
        "cursor_end": position,
        "metadata": {},
    }


def is_complete(code: str) -> dict[str, Any]:
    """Tell whether bash would wait for more."""
    checked = subprocess.run(
        [shutil.which("bash") or "bash", "-n", "-c", code],
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    if checked.returncode == 0 and not code.rstrip(" ").endswith("\\"):
        return {"status": "complete"}
    errors = checked.stderr.decode("utf-8", "replace")
    if "unexpected end of file" in errors or "unexpected EOF" in errors or checked.returncode == 0:
        return {"status": "incomplete", "indent": ""}
    return {"status": "invalid"}

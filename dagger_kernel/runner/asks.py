"""Questions about the state, answered by a fork of the waiting cell process.

The fork may load variables, evaluate properties and leave threads behind: it is gone after one answer, and
the process that will run the step stays as it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from typing import Any

from .limits import DEFAULTS, complete, enforce
from .mime import jsonable

SECONDS = 5
"""Time one answer may take."""

NAME = re.compile(r"[^\W\d]\w*")
EMPTY: dict[str, dict[str, Any]] = {
    "inspect": {"status": "ok", "found": False, "data": {}, "metadata": {}},
    "is_complete": {"status": "unknown"},
    "variables": {"status": "ok", "variables": []},
}


def empty(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return the answer that knows nothing."""
    if kind == "complete":
        position = content.get("cursor_pos") or 0
        return {
            "status": "ok",
            "matches": [],
            "cursor_start": position,
            "cursor_end": position,
            "metadata": {},
        }
    return EMPTY.get(
        kind, {"status": "error", "ename": "UnknownQuestion", "evalue": kind, "traceback": []}
    )


def ask_in_fork(shell: Any, session: Any, kind: str, content: dict[str, Any]) -> tuple[int, int]:
    """Start answering; return the fork's id and the descriptor its answer comes from."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    try:
        os.close(reader)
        for number in range(3):
            os.dup2(_devnull(), number)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        enforce(complete({"cpu_seconds": SECONDS, "disk_bytes": 1}) | _roomy(), own_pids=False)
        try:
            result = answer(shell, session, kind, content)
        except Exception as error:
            result = empty(kind, content) | {"reason": f"{type(error).__name__}: {error}"[:500]}
        with open(writer, "wb", closefd=False) as stream:
            stream.write(json.dumps(jsonable(result)).encode() + b"\n")
    finally:
        os._exit(0)


def read_answer(reader: int, kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return what a fork wrote, the empty answer if it wrote nothing whole."""
    # Up to the newline, not to the end: a grandchild may hold the pipe open.
    with open(reader, "rb") as stream:
        text = stream.readline(32 << 20)
    try:
        result = json.loads(text)
    except ValueError:
        return empty(kind, content)
    return result if isinstance(result, dict) else empty(kind, content)


def _devnull() -> int:
    return os.open(os.devnull, os.O_RDWR)


def _roomy() -> dict[str, float]:
    return {"memory_bytes": 2 * DEFAULTS["memory_bytes"]}


def answer(shell: Any, session: Any, kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """Answer one question."""
    if content.get("language") == "bash":
        from .bash_asks import answer as answer_bash

        return answer_bash(kind, content, session.root)
    code = str(content.get("code", ""))
    if kind == "is_complete":
        status, indent = shell.input_transformer_manager.check_complete(code)
        return {"status": status} | (
            {"indent": " " * (indent or 0)} if status == "incomplete" else {}
        )
    if kind == "variables":
        return {"status": "ok", "variables": session.describe()}
    position = content.get("cursor_pos")
    position = len(code) if position is None else max(0, min(int(position), len(code)))
    if kind == "complete":
        return complete_code(shell, session, code, position)
    if kind == "inspect":
        return inspect_code(shell, session, code, position, int(content.get("detail_level") or 0))
    return empty(kind, content)


def load(shell: Any, session: Any, text: str) -> None:
    """Load the saved variables that a piece of code names."""
    saved = set(session.names()) - set(shell.user_ns)
    for name in set(NAME.findall(text)) & saved:
        with contextlib.suppress(Exception):
            shell.user_ns.setdefault(name, eval(name, shell.user_ns))


def complete_code(shell: Any, session: Any, code: str, position: int) -> dict[str, Any]:
    """Complete code; names that are not loaded complete as well."""
    from IPython.core.completer import provisionalcompleter, rectify_completions

    before = code[:position]
    line = before[before.rfind("\n") + 1 :]
    load(shell, session, line)
    types = {}
    for entry in session.describe():
        name = entry.get("name")
        if isinstance(name, str) and name not in shell.user_ns:
            types[name] = str(entry.get("kind") or entry.get("type") or "instance")
            shell.user_ns[name] = None
    with provisionalcompleter():
        found = list(rectify_completions(code, shell.Completer.completions(code, position)))
    # IPython alone completes `x.na` from the dot; clients know it from the name, as Jedi does.
    dots = 1 if found and all(item.text.startswith(".") for item in found) else 0
    comps = [
        {
            "start": item.start + dots,
            "end": item.end,
            "text": item.text[dots:],
            "type": types.get(item.text, item.type),
            "signature": item.signature,
        }
        for item in found
    ]
    return {
        "status": "ok",
        "matches": [item["text"] for item in comps],
        "cursor_start": comps[0]["start"] if comps else position,
        "cursor_end": comps[0]["end"] if comps else position,
        "metadata": {"_jupyter_types_experimental": comps},
    }


def inspect_code(shell: Any, session: Any, code: str, position: int, detail: int) -> dict[str, Any]:
    """Describe the object at the cursor."""
    from IPython.utils.tokenutil import token_at_cursor

    name = token_at_cursor(code, position)
    load(shell, session, name)
    try:
        data = shell.object_inspect_mime(name, detail_level=detail)
    except KeyError:
        return {"status": "ok", "found": False, "data": {}, "metadata": {}}
    return {"status": "ok", "found": True, "data": data, "metadata": {}}

"""Run one Python step in the shell."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import threading
import time
from typing import Any

from . import own
from .display import Outlet
from .interrupts import Interrupts
from .limits import LimitReached
from .loop import finish_tasks
from .mime import cut, jsonable, safe_text
from .page import ENDING
from .shell import Shell
from .streams import flush

FIRST_WORD = re.compile(r"\s*([^\W\d]\w*)[^\n]*\s*\Z")

AFTERWARDS = 1.0
"""Seconds that threads and tasks which outlive the cell's code get."""


def transform(shell: Shell, source: str) -> str:
    """Return the step as plain Python; the source itself when it cannot be transformed."""
    shell.transformed = None
    try:
        plain = shell.transform_cell(source)
    except Exception:
        return source
    shell.transformed = source, plain
    return plain


def transformers(shell: Shell) -> list[Any]:
    """Return what changes a cell's text before it runs; the user's own come with the state."""
    manager = shell.input_transformer_manager
    return [
        *shell.input_transformers_post,
        *manager.cleanup_transforms,
        *manager.line_transforms,
        *manager.token_transformers,
        # Of one line, what its first word means: aliases are magics too.
        *shell.magics_manager.magics["line"],
        (shell.automagic, shell.autocall),
    ]


def settle_first_word(shell: Shell, source: str) -> None:
    """Load the variable that a one-line cell starts with: IPython looks at it before the cell runs.

    A macro's name runs the macro; a variable called like a magic is no magic. Call it when the state has begun.
    """
    found = FIRST_WORD.match(source)
    if found and found[1] in shell.saved_names():
        with contextlib.suppress(Exception):
            eval(found[1], shell.user_ns)
            shell.transformed = None


def run_step(shell: Shell, step: dict[str, Any], interrupts: Interrupts) -> dict[str, Any]:
    """Run the step's source and evaluate its user expressions; return what ``done`` tells of it."""
    silent = bool(step.get("silent"))
    store = bool(step.get("store_history", True)) and not silent
    count = int(step.get("execution_count") or 1)
    shell.execution_count = count
    shell.last_stb, shell.limit_reason, shell.display_failed = None, "", False
    shell.last_error = None
    threads = set(threading.enumerate())
    handled = shell.custom_exceptions
    error: BaseException | None = None
    expressions: dict[str, Any] = {}
    try:
        interrupts.start()
        if shell.state is not None:
            shell.state.make_due()
        error = run_source(shell, str(step.get("source", "")), store=store, silent=silent)
        if error is None and not shell.display_failed:
            wanted = step.get("user_expressions") or {}
            expressions = jsonable(shell.user_expressions(wanted)) if wanted else {}
        leftovers(threads)
    except BaseException as late:
        # An interrupt or a limit between IPython's own guards.
        error = late
    interrupts.page.phase = ENDING
    mend()
    flush()
    failed = error is not None or shell.display_failed
    if error is not None and not Outlet.errors:
        handled += shell.custom_exceptions
        show_bare(shell, error, handled=isinstance(error, handled))
    payloads = jsonable(shell.payload_manager.read_payload())
    shell.payload_manager.clear_payload()
    return {
        "status": status_of(shell, error, failed=failed),
        "reason": reason_of(shell, error) if failed else "",
        "exit_code": exit_code(error, failed=failed),
        "user_expressions": expressions,
        "payloads": payloads,
        "shown": bool(Outlet.errors),
    }


def run_source(shell: Shell, source: str, *, store: bool, silent: bool) -> BaseException | None:
    """Run source in the shell; return what ended it, None if nothing did."""
    result = shell.run_cell(source, store_history=store, silent=silent)
    if result is None:
        return None
    error = result.error_before_exec or result.error_in_exec
    if isinstance(error, asyncio.CancelledError) and shell.interrupts.happened:
        return KeyboardInterrupt()
    return error


def leftovers(before: set[threading.Thread]) -> None:
    """Give what the cell left running a moment, then tell what ends with it."""
    tasks = finish_tasks(AFTERWARDS)
    deadline = time.monotonic() + AFTERWARDS
    left = []
    for thread in threading.enumerate():
        if thread in before or thread.daemon or thread is threading.current_thread():
            continue
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            left.append(thread.name)
    if left:
        say(f"ended with the cell: {len(left)} thread(s) that still ran ({', '.join(left[:5])})")
    if tasks:
        say(f"ended with the cell: {tasks} asyncio task(s) that still ran; await them in the cell")


def say(text: str) -> None:
    """Tell the user something on the cell's stderr."""
    with contextlib.suppress(Exception):
        print(f"[dagger_kernel] {text}", file=sys.__stderr__, flush=True)


def mend(*, sure: bool = False) -> bool:
    """Put back what Python's libraries do not work without, and say so; return whether there was something."""
    names = own.mend(sure=sure)
    if names:
        say(f"put back, as Python's own libraries do not work with the cell's: {', '.join(names)}")
    return bool(names)


def show_bare(shell: Shell, error: BaseException, *, handled: bool) -> None:
    """Show an error that IPython did not show; of one that the user's handler took, tell only that it was."""
    if not handled:
        with contextlib.suppress(BaseException):
            shell.showtraceback((type(error), error, error.__traceback__))
    if not Outlet.errors:
        name, text = type(error).__name__, cut(safe_text(error), 8192)
        lines = [] if handled else [f"{name}: {text}"]
        frame = {"type": "error", "ename": name, "evalue": text, "traceback": lines}
        Outlet.send({**frame, "handled": True} if handled else frame)


def reason_of(shell: Shell, error: BaseException | None) -> str:
    """Return the word for the limit that ended a step; other errors have a ``reason`` of their own."""
    return (error.reason if isinstance(error, LimitReached) else "") or shell.limit_reason


def status_of(shell: Shell, error: BaseException | None, *, failed: bool) -> str:
    """Return the status word of a step."""
    if isinstance(error, LimitReached) or (failed and shell.limit_reason):
        return "limit"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return "error" if failed else "ok"


def exit_code(error: BaseException | None, *, failed: bool) -> int:
    """Return the exit code a script with this end would have."""
    if isinstance(error, SystemExit):
        code = error.code
        if code is None:
            return 0
        return code & 0xFF if isinstance(code, int) else 1  # what a process's end can tell
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 1 if failed else 0

"""Load fresh dumps once, in a forked child, before they are relied on.

Some objects pickle without complaint and fail when they are loaded, one even
crashes the interpreter. The cell that makes such an object is the place to say
so. The child has everything in memory and ends without a trace; only types of
libraries are tried, each until it has been loaded once.
"""

from __future__ import annotations

import builtins
import os
import select
import signal
import time
import warnings
from json import dumps as json_of  # the user may patch the module
from json import loads
from typing import TYPE_CHECKING

from .errors import reason_of
from .rebuild import pop_loader, push_loader
from .unpickler import StateUnpickler

if TYPE_CHECKING:
    from .dumping import Dump
    from .loader import Loader

SECONDS = 5.0
"""Time the child gets; what is not tried by then is taken on trust."""

TRUSTED = frozenset(
    {"builtins", "collections", "datetime", "decimal", "fractions", "functools", "itertools", "uuid",
     "pathlib", "re", "random", "string", "types", "numpy", "pandas", "polars", "pyarrow", "scipy",
     "sklearn", "torch", "networkx", "sympy", "plotly", "statsmodels", "tensorflow", "jax",
     "threading", "queue", "io", "_io", "logging", "enum", "operator", "argparse", "dataclasses",
     "inspect", "_thread", "zoneinfo", "ipaddress", "_struct", "array", "configparser", "csv",
     "html", "http", "json", "traceback", "urllib", "xml", "_elementtree", "email", "textwrap",
     "matplotlib", "cycler", "kiwisolver", "PIL", "_random", "weakref", "_weakrefset", "copy",
     "contextlib", "asyncio", "typing", "abc", "numbers", "secrets", "statistics", "_abc"}
)  # fmt: skip
"""Top-level packages whose objects are known to load as they were saved."""


def untried(dump: Dump, tried: set[str]) -> set[str]:
    """Types in a dump which were never seen to load."""
    return {
        name
        for name in dump.pickler.foreign
        if name not in tried
        and name.partition(".")[0] not in TRUSTED
        and not hasattr(builtins, name)  # such as slice: their names have no module in front
    }


def try_loading(dumps: dict[str, Dump], loader: Loader) -> dict[str, str]:
    """Load dumps in a child.

    Returns
    -------
    dict of str to str
        Why a dump does not load, by key; those which load are absent.
    """
    waiting = list(dumps)
    failures: dict[str, str] = {}
    while waiting:
        done, ended = _round({key: dumps[key] for key in waiting}, loader)
        failures.update({key: reason for key, reason in done.items() if reason})
        waiting = waiting[len(done) :]
        if ended not in _CRASHES or not waiting:
            break  # all are tried; or somebody else ended the child, which tells nothing
        # The child died over the first one which it did not report.
        failures[waiting.pop(0)] = "loading it crashes the interpreter"
    return failures


_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})


def _round(dumps: dict[str, Dump], loader: Loader) -> tuple[dict[str, str], int]:
    """Try dumps in one child; give what it reported, and the signal that ended it."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            child = os.fork()
        except OSError:
            os.close(reader)
            os.close(writer)
            return dict.fromkeys(dumps, ""), 0
    if not child:
        _child(dumps, loader, writer)
    os.close(writer)
    try:
        text, ended = _read(reader, time.monotonic() + SECONDS)
    finally:
        os.close(reader)
    try:
        if not ended:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    except OSError:  # somebody else has waited for it
        status = 0
    lines = [loads(line) for line in text.splitlines() if line.endswith(b"]")]
    done = {line[0]: line[1] for line in lines if len(line) == 2}
    return done, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _read(reader: int, deadline: float) -> tuple[bytes, bool]:
    """Read until the end or the deadline; tell whether it was the end."""
    text = b""
    while True:
        left = deadline - time.monotonic()
        ready = select.select([reader], [], [], max(0.0, left))[0]
        if not ready:
            return text, False
        piece = os.read(reader, 1 << 16)
        if not piece:
            return text, True
        text += piece


def _child(dumps: dict[str, Dump], loader: Loader, writer: int) -> None:
    """Load each dump and report; never returns."""
    try:
        silence = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(silence, number)
        signal.set_wakeup_fd(-1)
        push_loader(loader)
        for key, dump in dumps.items():
            reason = ""
            try:
                buffers = [buffer.raw() for buffer in dump.buffers]
                unpickler = StateUnpickler(dump.skeleton, buffers, loader.registry)
                if dump.pickler.seeded:
                    unpickler.load()
                unpickler.load()
            except BaseException as error:
                reason = f"it saves, but loading it fails with {reason_of(error)}"[:500]
            os.write(writer, json_of([key, reason]).encode() + b"\n")
        pop_loader()
    finally:
        os._exit(0)

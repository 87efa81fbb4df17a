"""The event loop for cells with top-level ``await``."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any

_runner: asyncio.Runner | None = None


def runner() -> asyncio.Runner:
    """Return the one loop runner of the cell process.

    asyncio's own runner cancels the awaiting code on the first SIGINT, so that ``finally`` and ``except
    CancelledError`` run, and raises KeyboardInterrupt when it has ended.
    """
    global _runner
    if _runner is None or _runner.get_loop().is_closed():
        _runner = asyncio.Runner()
    return _runner


def run_in_loop(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a cell that awaits."""
    return runner().run(coroutine)


def watch(file: int, callback: Callable[[], None]) -> None:
    """Call back when a descriptor is readable while a cell awaits."""
    runner().get_loop().add_reader(file, callback)


def finish_tasks(seconds: float) -> int:
    """Give tasks that the cell left behind a moment; return how many did not end.

    In a long-lived kernel they would run on behind the next cells.
    """
    if _runner is None:
        return 0
    loop = _runner.get_loop()
    if loop.is_closed() or loop.is_running():
        return 0
    tasks = asyncio.all_tasks(loop)
    if not tasks:
        return 0
    deadline = time.monotonic() + seconds
    with contextlib.suppress(Exception):
        loop.run_until_complete(asyncio.wait(tasks, timeout=deadline - time.monotonic()))
    return sum(not task.done() for task in tasks)

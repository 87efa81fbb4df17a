"""The event loop for cells with top-level ``await``."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

NEEDS_LOOP = ("create_task(", "ensure_future(", "get_running_loop(")
RUNS_LOOP = ("asyncio.run(", "run_until_complete(", "Runner(")


class Loop:
    """The one event loop of the cell process.

    asyncio's own runner cancels the awaiting code on the first SIGINT, so that ``finally`` and ``except
    CancelledError`` run, and raises KeyboardInterrupt when it has ended.

    Attributes
    ----------
    on_readable
        A descriptor and what to call when it is readable while a cell awaits.
    """

    runner: ClassVar[asyncio.Runner | None] = None
    on_readable: ClassVar[tuple[int, Callable[[], None]] | None] = None

    @classmethod
    def get(cls) -> asyncio.Runner:
        """Return the runner, a new one if the cell has closed it."""
        if cls.runner is None or cls.runner.get_loop().is_closed():
            cls.runner = asyncio.Runner()
            if cls.on_readable is not None:
                cls.runner.get_loop().add_reader(*cls.on_readable)
        return cls.runner


def run_in_loop(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a cell that awaits."""
    return Loop.get().run(coroutine)


def prepare(source: str) -> bool:
    """Return whether a cell without ``await`` has to run inside the loop all the same.

    ipykernel runs every cell inside its loop, so that ``create_task`` works and ``asyncio.run`` does not.
    Here a cell gets what it asks for.
    """
    if "event_loop" in source:
        asyncio.set_event_loop(Loop.get().get_loop())
    wants = any(word in source for word in NEEDS_LOOP)
    return wants and not any(word in source for word in RUNS_LOOP)


def finish_tasks(seconds: float) -> int:
    """Give tasks that the cell left behind a moment; return how many did not end.

    In a long-lived kernel they would run on behind the next cells.
    """
    if Loop.runner is None:
        return 0
    loop = Loop.runner.get_loop()
    if loop.is_closed() or loop.is_running():
        return 0
    tasks = asyncio.all_tasks(loop)
    if not tasks:
        return 0
    deadline = time.monotonic() + seconds
    with contextlib.suppress(Exception):
        loop.run_until_complete(asyncio.wait(tasks, timeout=deadline - time.monotonic()))
    return sum(not task.done() for task in tasks)

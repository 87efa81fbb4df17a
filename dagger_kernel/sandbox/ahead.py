"""Files that were uploaded are put into the state while nobody waits for it: the next cell finds them there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from ..engines.base import Base, ChainStep, Engine
from ..errors import DaggerKernelError

SETTLE_SECONDS = 0.25
"""Files often come one after another; they are put in together."""
PATIENCE_SECONDS = 10.0
"""How long the pauses before another try get, each twice the one before it: then what has not come will not come."""


class Ahead:
    """Does something soon, once for all who asked meanwhile. Belongs to one event loop.

    Parameters
    ----------
    work
        What is done; its errors are left to whoever needs the result. It returns whether there is nothing left
        to wait for; else it is tried again.
    """

    def __init__(self, work: Callable[[], Awaitable[bool]]) -> None:
        self._work = work
        self._pause = SETTLE_SECONDS
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def soon(self) -> None:
        """Do it in a moment."""
        if self._pause > SETTLE_SECONDS:
            self._cancel()  # another try, that waits longer
        self._pause = SETTLE_SECONDS
        if self._timer is None:
            self._wait()

    async def settle(self) -> None:
        """Do it no more; wait for what was begun."""
        self._cancel()
        if self._task is not None:
            await asyncio.shield(self._task)
            self._cancel()  # it may have asked for more

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pause, self._start)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self._timer = None
        if self._task is not None and not self._task.done():
            self.soon()
        else:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        done = True
        with contextlib.suppress(DaggerKernelError, OSError):
            done = await self._work()
        if not done and self._timer is None and self._pause < PATIENCE_SECONDS:
            self._pause *= 2
            self._wait()


async def put_in(engine: Engine, chain: Sequence[ChainStep], base: Base, sandbox_id: str) -> bool:
    """Make the state after a chain that ends in uploads, if that repeats no cell.

    Returns
    -------
    bool
        False: the state before the uploads is not there. It may be coming, where its cell has just ended.

    Raises
    ------
    DaggerKernelError, OSError
    """
    if not engine.puts_files_cheaply or not chain or chain[-1].kind != "upload":
        return True
    before = next((step for step in reversed(chain) if step.kind != "upload"), None)
    if before is not None and not await engine.has(before.key):
        return False
    await engine.ensure(chain, base=base, sandbox_id=sandbox_id)
    return True

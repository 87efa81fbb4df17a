"""Files that the panel put into sandboxes: into the engine's states before the next cell asks for them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..engines.base import Engine
    from ..log import LogStore
    from ..sandbox.ahead import Ahead
    from ..sandbox.tip import Tip

T = TypeVar("T")

KEPT = 64
"""Sandboxes whose chain the server remembers from one upload to the next."""


class Incoming:
    """Belongs to the server's event loop.

    Parameters
    ----------
    log
        The log.
    engine
        Finds the engine; None: there is none.
    """

    def __init__(self, log: LogStore, engine: Callable[[], Awaitable[Engine | None]]) -> None:
        self._log, self._engine = log, engine
        self._sandboxes: OrderedDict[str, Ahead] = OrderedDict()

    def put_in_soon(self, sandbox_id: str) -> None:
        """Files were logged: make their state in the background, if that costs nothing but writing them."""
        from ..sandbox.ahead import Ahead
        from ..sandbox.secrets import Secrets
        from ..sandbox.tip import Tip

        ahead = self._sandboxes.pop(sandbox_id, None)
        if ahead is None:
            tip = Tip(_Threads(), self._log, sandbox_id, Secrets())
            ahead = Ahead(partial(self._put_in, tip, sandbox_id))
        self._sandboxes[sandbox_id] = ahead
        while len(self._sandboxes) > KEPT:
            self._sandboxes.popitem(last=False)
        ahead.soon()

    async def close(self) -> None:
        """Finish what was begun; forget the rest."""
        for ahead in self._sandboxes.values():
            await ahead.settle()
        self._sandboxes.clear()

    async def _put_in(self, tip: Tip, sandbox_id: str) -> bool:
        from ..engines.base import Base
        from ..sandbox.ahead import put_in

        engine = await self._engine()
        if engine is None or not engine.puts_files_cheaply:
            return True
        await tip.refresh()
        digest = tip.recorded_base(engine.name)
        if digest is None or tip.step is None:
            return True
        base = Base(digest=digest, runner_digest=tip.step.runner_digest, python="")
        return await put_in(engine, tip.chain, base, sandbox_id)


class _Threads:
    """Stands where a session has its logbook."""

    async def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return await asyncio.to_thread(function, *args, **kwargs)

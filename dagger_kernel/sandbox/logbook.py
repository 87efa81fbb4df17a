"""The log from a coroutine: every call in one worker thread, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from ..log import LogStore, open_log
from ..settings import Settings

T = TypeVar("T")


class LogCalls(Protocol):
    """Runs blocking calls of the log for coroutines."""

    async def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a function in another thread."""


class Logbook:
    """Runs log calls in one dedicated thread, so that a slow database never stops the kernel's loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, "dagger-kernel-log")
        self._store: LogStore | None = None

    async def open(self) -> LogStore:
        """Open the log (once) and return it.

        Raises
        ------
        LogUnavailableError, LogVersionError, StorageFullError
        """
        if self._store is None:
            self._store = await self.call(open_log, self._settings)
        return self._store

    async def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a function in the log's thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: function(*args, **kwargs))

    def later(self, function: Callable[[], None]) -> None:
        """Run a function in the log's thread after all that was asked before; nobody waits for it."""
        try:
            self._thread.submit(function)
        except RuntimeError:
            function()  # closed meanwhile

    async def close(self) -> None:
        """Close the log and end the thread."""
        if self._store is not None:
            await self.call(self._store.close)
            self._store = None
        self._thread.shutdown(wait=False)

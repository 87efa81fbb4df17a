"""Whose turn it is: one step at a time on a sandbox, a bounded number on an engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ..engines.base import Progress, no_progress
from ..errors import SandboxBusyError
from ..log import SandboxLock, Slots, Ticket
from ..settings import Settings
from .capacity import Capacity
from .cell import InterruptedByUser
from .logbook import Logbook

T = TypeVar("T")
LOCK_SECONDS = 130.0
"""How long another process's step is waited for: longer than a cell may run by default."""
POLL_SECONDS = 0.05


class Turn:
    """The waiting before a step, which an interrupt stops. Belongs to one event loop."""

    def __init__(self, settings: Settings, logbook: Logbook, sandbox_id: str) -> None:
        self._settings = settings
        self._logbook = logbook
        self._capacity = Capacity(settings)
        self._lock = SandboxLock(settings, sandbox_id)
        self._mine = asyncio.Lock()
        self._waiting: asyncio.Future[Any] | None = None
        self._interrupted = False

    @asynccontextmanager
    async def sandbox(self, progress: Progress = no_progress) -> AsyncIterator[None]:
        """Hold the sandbox, against other tasks and against other processes.

        Raises
        ------
        SandboxBusyError, LogUnavailableError, InterruptedByUser
        """
        async with self._mine:
            self._interrupted = False
            try:
                await self.interruptible(self._acquire(progress))
                yield
            finally:
                # After an interrupted `acquire`, which its thread ends all the same.
                self._logbook.later(self._lock.release)

    @asynccontextmanager
    async def place(self, engine_name: str, progress: Progress) -> AsyncIterator[None]:
        """Hold one of the engine's running places; wait in its queue, telling the position.

        Raises
        ------
        CapacityError, InterruptedByUser
        """
        slots = Slots(self._settings, engine_name, limits=self._capacity)
        tickets: list[Ticket] = []
        try:
            await self._logbook.call(lambda: tickets.append(slots.enter()))
            if not tickets[0].ready:
                await self.interruptible(self._queue(tickets[0], progress))
            yield
        finally:
            self._logbook.later(lambda: _leave(tickets))

    async def interruptible(self, work: Awaitable[T]) -> T:
        """Wait for work that comes before the cell; `interrupt` stops it.

        Raises
        ------
        InterruptedByUser
        """
        task = asyncio.ensure_future(work)
        self._waiting = task
        try:
            return await task
        except asyncio.CancelledError:
            if self._interrupted:
                raise InterruptedByUser from None
            task.cancel()
            raise
        finally:
            self._waiting = None

    def interrupt(self) -> None:
        """Stop the waiting, if there is any."""
        if self._waiting is not None:
            self._interrupted = True
            self._waiting.cancel()

    async def _acquire(self, progress: Progress) -> None:
        deadline = asyncio.get_running_loop().time() + LOCK_SECONDS
        waited = False
        while True:
            try:
                await self._logbook.call(self._lock.acquire)
            except SandboxBusyError as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                waited = True
                progress(f"waiting for {error.holder}, which uses this sandbox")
                await asyncio.sleep(POLL_SECONDS)
            else:
                if waited:
                    progress("")
                return

    async def _queue(self, ticket: Ticket, progress: Progress) -> None:
        shown = 0
        while position := await self._logbook.call(ticket.position):
            if position != shown:
                progress(f"waiting for a free place: {position} in the queue")
            shown = position
            await asyncio.sleep(POLL_SECONDS)
        if shown:
            progress("")


def _leave(tickets: list[Ticket]) -> None:
    for ticket in tickets:
        ticket.release()

"""The standby: the room prepared ahead on the tip. Only an accelerator; losing it costs time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from ..engines.base import Room
from ..errors import DaggerKernelError

Opener = Callable[[], Awaitable[Room]]


class Standby:
    """At most one waiting room, opened in the background. Belongs to one event loop.

    Parameters
    ----------
    idle_seconds
        A room nobody took for this long is closed.
    """

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._task: asyncio.Task[Room] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def prepare(self, opener: Opener) -> None:
        """Open a room in the background; a room already there is kept."""
        if self._task is None:
            self._task = asyncio.create_task(self._open(opener))
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(
                self._idle_seconds, lambda: asyncio.ensure_future(self.drop())
            )

    async def take(self, parent_key: str) -> Room | None:
        """Return the waiting room and forget it; None if there is none on this state."""
        room = await self.peek(parent_key)
        if room is not None:
            self._forget()
        return room

    async def peek(self, parent_key: str) -> Room | None:
        """Return the waiting room on this state, waiting for one that is being opened."""
        if self._task is None:
            return None
        task = self._task
        try:
            room = await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                return None
            raise
        except (DaggerKernelError, OSError):
            self._forget()
            return None
        if room.alive and room.parent_key == parent_key:
            return room
        await self.drop()
        return None

    async def drop(self) -> None:
        """Close the room, or stop opening it."""
        task = self._task
        self._forget()
        if task is None:
            return
        if not task.done():
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, DaggerKernelError, OSError):
            room = await task
            await room.close()

    def _forget(self) -> None:
        self._task = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @staticmethod
    async def _open(opener: Opener) -> Room:
        return await opener()

"""Opening rooms: evaluate an exec in the background, and wait until it has connected."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from ...errors import DaggerKernelError, RoomLostError, RoomNotOpenedError
from . import faults
from .chain import Ground
from .replay import evaluated
from .room import DaggerRoom
from .server import LinkServer, Visitor
from .states import State, States

if TYPE_CHECKING:
    import dagger

OPEN_SECONDS = 90.0
"""From the start of an exec to its first word; a busy engine may take its time."""
AGAIN = "DAGGER_KERNEL_AGAIN"
"""Variable that lets an exec run that the cache would answer."""


class Opener:
    """Opens the rooms of an engine object; ``rooms`` are those that live. Belongs to one event loop."""

    def __init__(self, server: LinkServer, states: States) -> None:
        self._server = server
        self._states = states
        self.rooms: set[DaggerRoom] = set()

    async def open(self, ground: Ground, parent: State, nonce: str) -> DaggerRoom:
        """Open a room on a state.

        Raises
        ------
        RoomLostError
            The exec ended, or did not come, before it said a word.
        """
        container = ground.with_cell(parent.container, nonce)
        visitor, evaluation = await self._start(container, nonce)
        cached: dagger.Container | None = None
        if visitor is None:
            # This nonce ran here before (reuse = "shared"). It runs again for its output; the state that
            # every replay will find stands.
            cached = evaluation.result()
            again = parent.container.with_env_variable(AGAIN, secrets.token_hex(8))
            visitor, evaluation = await self._start(ground.with_cell(again, nonce), nonce)
        if visitor is None:
            raise RoomNotOpenedError("The room could not be opened.", engine=faults.NAME)

        async def keep(key: str, after: dagger.Container) -> None:
            await self._keep(ground, parent, key, cached or after)

        room = DaggerRoom(
            visitor.link,
            nonce,
            parent.key,
            evaluation=evaluation,
            keep=keep,
            ended=self.rooms.discard,
        )
        self.rooms.add(room)
        return room

    async def _start(
        self, container: dagger.Container, nonce: str
    ) -> tuple[Visitor | None, asyncio.Task[dagger.Container]]:
        """Evaluate an exec in the background; return when it has connected, or was cached (None)."""
        arrived: asyncio.Future[Visitor] = asyncio.get_running_loop().create_future()

        def take(visitor: Visitor) -> None:
            if arrived.done():
                visitor.link.close()
            else:
                arrived.set_result(visitor)

        self._server.expect(nonce, take)
        evaluation = asyncio.create_task(evaluated(container))
        try:
            await asyncio.wait(
                (evaluation, arrived), timeout=OPEN_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if arrived.done():
                return arrived.result(), evaluation
            if not evaluation.done():
                raise RoomLostError(
                    f"The Dagger engine started no container within {OPEN_SECONDS:g} s.",
                    engine=faults.NAME,
                )
            error = evaluation.exception()
            if error is not None:
                raise self._not_opened(error) from error
        except BaseException:
            evaluation.cancel()
            await asyncio.gather(evaluation, return_exceptions=True)
            raise
        finally:
            self._server.forget(nonce)
            arrived.cancel()
        return None, evaluation

    def _not_opened(self, error: BaseException) -> DaggerKernelError:
        code = faults.exit_code(error)
        if code is None:
            return faults.translate(error, "opening a room")
        words = faults.brief(str(getattr(error, "stderr", "")) or str(error))
        return RoomNotOpenedError(
            f"The room could not be opened: its runner ended with exit code {code}. {words}",
            engine=faults.NAME,
        )

    async def _keep(self, ground: Ground, parent: State, key: str, after: dagger.Container) -> None:
        """Make the container after a step the state of its key."""
        position = parent.position + 1
        settled = ground.settled(after, position)
        if settled is not after:
            settled = await settled.sync()
        self._states.put(
            State(key=key, parent_key=parent.key, position=position, kind="cell", container=settled)
        )

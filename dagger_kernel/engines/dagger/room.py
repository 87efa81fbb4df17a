"""A room of the Dagger engine: an exec that waits at the link, evaluated in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ...errors import RoomLostError
from ..base import Outcome, StepHandler
from ..link import Link, LinkRoom
from . import faults

if TYPE_CHECKING:
    import dagger

EXIT_SECONDS = 90.0
"""From the outcome to the end of the exec: the engine makes the layer meanwhile."""
SILENCE_SECONDS = 180.0
"""On top of a step's own clock: when not even the runner's end of it was heard, the engine is lost."""

Keep = Callable[[str, "dagger.Container"], Awaitable[None]]


class DaggerRoom(LinkRoom):
    """See `Room`. The container after the exec becomes the state.

    Parameters
    ----------
    evaluation
        Gives the container after the exec.
    keep
        Takes the key and the container: makes it the state of the key.
    ended
        Called once, when the room is over.
    """

    engine_name = faults.NAME

    def __init__(
        self,
        link: Link,
        nonce: str,
        parent_key: str,
        *,
        evaluation: asyncio.Task[dagger.Container],
        keep: Keep,
        ended: Callable[[DaggerRoom], None],
    ) -> None:
        super().__init__(link, nonce, parent_key)
        self._evaluation = evaluation
        self._keep = keep
        self._ended = ended

    async def run(self, request: dict[str, Any], handler: StepHandler) -> Outcome:
        """Deliver the step; see `Room.run`. A lost engine says so."""
        wall = float((request.get("limits") or {}).get("wall_seconds") or 0)
        patience = wall + SILENCE_SECONDS if wall else None
        try:
            async with asyncio.timeout(patience):
                outcome = await super().run(request, handler)
        except RoomLostError as error:
            raise await self._explained(error) from error
        except TimeoutError:
            raise RoomLostError(
                "The Dagger engine has not been heard of since the cell began.",
                engine=faults.NAME,
                started=True,
            ) from None
        self._link.send({"type": "close"})  # the runner waits for it: it may exit now
        return outcome

    async def commit(self, key: str) -> None:
        """Wait for the exec's end and keep its container as the state of a key."""
        try:
            async with asyncio.timeout(EXIT_SECONDS):
                container = await asyncio.shield(self._evaluation)
            await self._keep(key, container)
        except TimeoutError:
            raise RoomLostError(
                "The sandbox did not end after its step.", engine=faults.NAME, started=True
            ) from None
        except Exception as error:
            raise faults.translate(error, "keeping the step's files") from error
        finally:
            await self._finish()

    async def discard(self) -> None:
        """Drop the exec: nothing refers to what it made."""
        await self._finish()

    async def close(self) -> None:
        """End a room that got no step; also ends a running one. The engine caches neither."""
        running = self._state == "running"
        await super().close()
        self._fail(RoomLostError("The room was closed.", engine=faults.NAME, started=running))
        await self._finish()

    async def _finish(self) -> None:
        self._link.close()
        self._evaluation.cancel()
        await asyncio.gather(self._evaluation, return_exceptions=True)
        self._ended(self)

    async def _explained(self, lost: RoomLostError) -> RoomLostError:
        """Return the loss with what the engine says of the exec, if it says so soon."""
        await asyncio.wait([self._evaluation], timeout=2.0)
        if not self._evaluation.done() or self._evaluation.cancelled():
            return lost
        error = self._evaluation.exception()
        if error is None:
            return lost
        code = faults.exit_code(error)
        if code is None:
            why = faults.translate(error, "while the cell ran").what
        else:
            words = faults.brief(str(getattr(error, "stderr", "")))
            why = f"Its runner ended with exit code {code}. {words}".strip()
        return RoomLostError(
            f"The sandbox ended without a result. {why}",
            engine=faults.NAME,
            started=lost.started,
        )


class RepeatRoom(LinkRoom):
    """A replayed step's end of the link; the chain's evaluation keeps its state."""

    engine_name = faults.NAME

    async def run(self, request: dict[str, Any], handler: StepHandler) -> Outcome:
        """Deliver the step; let the runner exit once its outcome is here."""
        outcome = await super().run(request, handler)
        self._link.send({"type": "close"})
        return outcome

    async def commit(self, key: str) -> None:
        """Do nothing."""

    async def discard(self) -> None:
        """Do nothing."""

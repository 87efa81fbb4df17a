"""A room of the local engine: a forked child of the zygote on an overlay of layers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...errors import RoomLostError
from ..base import Outcome, StepHandler
from ..link import Link, LinkRoom
from .cgroups import Cgroup
from .guard import Guard
from .layer import Layer
from .layers import LayerStore
from .proxy import Proxy
from .zygote import Zygote

EXIT_SECONDS = 5.0


class LocalRoom(LinkRoom):
    """See `Room`. The upper directory of its overlay becomes the layer."""

    engine_name = "local"

    def __init__(
        self,
        link: Link,
        nonce: str,
        parent: Layer,
        *,
        zygote: Zygote,
        number: int,
        directory: str,
        store: LayerStore,
        proxy: Proxy,
        cgroup: Cgroup,
        ended: Callable[[LocalRoom], None],
    ) -> None:
        super().__init__(link, nonce, parent.key)
        self._parent = parent
        self._zygote = zygote
        self._number = number
        self._directory = directory
        self._store = store
        self._proxy = proxy
        self._cgroup = cgroup
        self._ended = ended
        self._guard: Guard | None = None
        self._gone = False

    @property
    def alive(self) -> bool:
        """Whether a step can still be given to it: it waits, and nobody took away what it stands on."""
        return super().alive and self._store.stands(self._directory, self._parent)

    async def run(self, request: dict[str, Any], handler: StepHandler) -> Outcome:
        """Deliver the step; its outcome also tells which hosts it reached."""
        upper = self._store.root / self._directory / "fs"
        self._guard = Guard(upper, request["limits"], lambda: self._zygote.kill(self._number))
        watch = asyncio.create_task(self._guard.watch())
        self._cgroup.limit(int(request["limits"]["memory_bytes"]))
        try:
            outcome = await super().run(request, handler)
        except RoomLostError:
            if not self._guard.reason:
                raise
            handler.event(self._guard.error(), b"")
            outcome = self._guard.outcome()
        finally:
            watch.cancel()
        if not self._store.stands(self._directory, self._parent):
            # What was read from there may have been missing without any error: an older state, fewer files.
            raise RoomLostError(
                "The layers below the cell were removed while it ran.",
                engine=self.engine_name,
                started=True,
            )
        if not self._proxy.hosts:
            return outcome
        return replace(outcome, usage={**outcome.usage, "hosts": self._proxy.hosts})

    def _take(self, head: dict[str, Any], body: bytes) -> None:
        if self._guard is None or self._guard.take(
            head["type"], self._link.frame_size, len(self._inputs)
        ):
            super()._take(head, body)

    async def commit(self, key: str) -> None:
        """Make the upper directory the layer of a key."""
        await self._wait_for_exit()
        try:
            await asyncio.to_thread(self._store.commit, self._directory, key, self._parent)
        except BaseException:
            await asyncio.to_thread(self._store.drop, self._directory)
            raise
        finally:
            self._finish()

    async def discard(self) -> None:
        """Drop what the room wrote."""
        await self._wait_for_exit()
        await asyncio.to_thread(self._store.drop, self._directory)
        self._finish()

    async def close(self) -> None:
        """End a room that got no step; also ends a running one at once."""
        if self._gone:
            return
        self._gone = True
        await super().close()
        self._zygote.kill(self._number)
        await self._zygote.exited(self._number)
        await asyncio.to_thread(self._store.drop, self._directory)
        self._finish()

    async def _wait_for_exit(self) -> None:
        """Wait until no process of the room is left, so that its layer is still."""
        self._gone = True
        try:
            async with asyncio.timeout(EXIT_SECONDS):
                await self._zygote.exited(self._number)
        except TimeoutError:
            self._zygote.kill(self._number)
            await self._zygote.exited(self._number)
        self._link.close()

    def _finish(self) -> None:
        self._proxy.close()
        self._cgroup.remove()
        self._zygote.forget(self._number)
        self._ended(self)

"""The rooms of one sandbox: engine and base when first needed, the standby, layers made while the user reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from ..engines.base import Base, ChainStep, Engine, Progress, Room, no_progress
from ..engines.select import select_engine
from ..errors import DaggerKernelError
from ..log import BlobStore
from ..settings import Settings
from ..steps import fresh_nonce
from .ahead import Ahead, put_in
from .standby import Standby
from .tip import Tip


class Rooms:
    """Opens rooms on a tip. Belongs to one event loop."""

    def __init__(self, settings: Settings, blobs: BlobStore, tip: Tip, sandbox_id: str) -> None:
        self._settings = settings
        self._blobs = blobs
        self._tip = tip
        self._sandbox_id = sandbox_id
        self._engine: Engine | None = None
        self._base: Base | None = None
        self._choosing, self._preparing, self._making = (asyncio.Lock() for _ in range(3))
        self._standby = Standby(settings.standby_idle_seconds)
        self._listening: Progress = no_progress
        self._committing: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._ahead = Ahead(self._put_in)
        self._seen_chain: list[ChainStep] = []

    @property
    def engine_name(self) -> str:
        """Name of the engine, empty before it was needed."""
        return self._engine.name if self._engine else ""

    @property
    def base(self) -> Base | None:
        """The base, None before it was needed."""
        return self._base

    async def engine(self) -> Engine:
        """Return the engine, choosing it on the first call.

        Raises
        ------
        EngineUnavailableError
        """
        async with self._choosing:  # warming and the first cell ask at the same time
            if self._engine is None:
                self._engine = await select_engine(self._settings, self._blobs)
        return self._engine

    async def prepare(self, progress: Progress = no_progress) -> Base:
        """Return the base, prepared; the last step's layer is made too.

        Raises
        ------
        EngineError, StorageFullError
        """
        if self._committing is not None:
            await asyncio.shield(self._committing)
        engine = await self.engine()
        async with self._preparing:
            if self._base is None:
                digest = self._tip.recorded_base(engine.name)
                self._base = await engine.prepare(progress, digest)
        return self._base

    async def take(self, progress: Progress, nonce: str | None = None) -> Room:
        """Return a room on the tip: the standby if it fits, else a new one; a new one for a given nonce."""
        await self._ahead.settle()
        base = await self.prepare(progress)
        with self._heard_by(progress):
            if nonce is not None:
                return await self._open(nonce)
            try:
                if self._warming is not None:
                    await asyncio.wait([self._warming])  # it may be about to open a standby
                room = await self._standby.take(self._tip.key(base))
            except asyncio.CancelledError:
                await self._standby.drop()  # an interrupt stops a replay, whoever began it
                raise
            return room or await self._open(fresh_nonce())

    async def waiting(self) -> Room | None:
        """Return the standby on the tip, opened now if need be; it stays the standby."""
        base = await self.prepare()
        key = self._tip.key(base)
        room = await self._standby.peek(key)
        if room is None:
            self._standby.prepare(self._open_standby)
            room = await self._standby.peek(key)
        return room

    async def ensure_tip(self, progress: Progress) -> str:
        """Make the tip's state exist; return its key."""
        base = await self.prepare(progress)
        engine = await self.engine()
        with self._heard_by(progress):
            async with self._making_states():
                return await engine.ensure(
                    self._tip.chain,
                    base=base,
                    sandbox_id=self._sandbox_id,
                    progress=self._tell,
                    replayed=self._tip.drift.replayed,
                )

    def commit_later(self, room: Room, key: str) -> None:
        """Make the room's layer in the background, then the next standby."""
        self._committing = asyncio.create_task(self._commit(room, key))

    def stand_by(self) -> None:
        """Prepare the next cell's room in the background, if standbys are wanted."""
        if self._settings.standby and self._settings.reuse == "none" and self._base is not None:
            self._standby.prepare(self._open_standby)

    def put_in_soon(self) -> None:
        """Put uploaded files into the tip's state, and prepare the next cell's room when no more come."""
        self._ahead.soon()

    async def _put_in(self) -> bool:
        if self._engine is None or self._base is None:
            return True
        chain, known = self._tip.chain, self._seen_chain
        self._seen_chain = chain
        async with self._making_states():
            await put_in(self._engine, chain, self._base, self._sandbox_id)
        if self._tip.chain is chain and (chain is known or self._engine.puts_files_cheaply):
            self.stand_by()  # it also waits for a layer that is still being made
        else:
            self._ahead.soon()
        return True

    def start_warming(self) -> None:
        """Prepare engine and standby in the background, if that needs no base build."""
        if self._warming is None:
            self._warming = asyncio.create_task(self._warm())

    async def drop_standby(self) -> None:
        """Close the standby: the tip moved."""
        await self._standby.drop()

    async def close(self) -> None:
        """Finish the last layer, close everything. Idempotent."""
        await self._ahead.settle()
        if self._warming is not None:
            self._warming.cancel()
        if self._committing is not None:
            await asyncio.gather(self._committing, return_exceptions=True)
        await self._standby.drop()
        if self._engine is not None:
            await self._engine.close()
            self._engine = None

    async def _open(self, nonce: str) -> Room:
        assert self._base is not None
        engine = await self.engine()
        async with self._making_states():
            return await engine.open(
                self._tip.chain,
                nonce,
                base=self._base,
                sandbox_id=self._sandbox_id,
                progress=self._tell,
                replayed=self._tip.drift.replayed,
            )

    async def _open_standby(self) -> Room:
        return await self._open(fresh_nonce())

    @asynccontextmanager
    async def _making_states(self) -> AsyncIterator[None]:
        """Make missing states one after another, the last cell's first: none is made twice at the same time."""
        async with self._making:
            if self._committing is not None:
                await asyncio.shield(self._committing)
            yield

    @contextmanager
    def _heard_by(self, progress: Progress) -> Iterator[None]:
        """Tell whoever waits now what is being made, also if it was begun for nobody."""
        self._listening = progress
        try:
            yield
        finally:
            self._listening = no_progress

    def _tell(self, text: str) -> None:
        self._listening(text)

    async def _commit(self, room: Room, key: str) -> None:
        try:
            await room.commit(key)
        except (DaggerKernelError, OSError):
            return  # the layer is a cache entry: the next cell repeats the step
        self.stand_by()

    async def _warm(self) -> None:
        try:
            engine = await self.engine()
            report = await engine.describe()
            if report.get("base_built"):
                await self.prepare()
                self.stand_by()
        except (DaggerKernelError, OSError):
            pass  # the first cell meets the same error and tells it

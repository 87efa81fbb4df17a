"""The Dagger engine: execs on a Dagger engine, their states in its cache.

Start reading at `DaggerEngine.open`: it makes the parent's state (`replay`), then evaluates one more exec of the
chain (`chain`) in the background and returns when that exec has connected (`opening`): a `room`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ...errors import DaggerKernelError, RoomLostError
from ...settings import Settings
from ...steps import root_key
from ..base import (
    Base,
    BlobSource,
    ChainStep,
    Engine,
    FileInfo,
    Progress,
    Replayed,
    Room,
    ignore_replayed,
    no_progress,
)
from ..files import chunks
from . import faults
from .bases import Bases
from .chain import Ground
from .cli import find_cli
from .connection import Connection
from .epoch import Epoch
from .opening import Opener
from .replay import Replay
from .room import DaggerRoom
from .server import LinkServer, host_path
from .states import State, States
from .view import View

T = TypeVar("T")
DESCRIBE_SECONDS = 10.0


class DaggerEngine(Engine):
    """See `Engine`. The engine's cache belongs to everybody who uses it; we hold handles."""

    name = faults.NAME

    def __init__(self, settings: Settings, blobs: BlobSource) -> None:
        self._settings = settings
        self._blobs = blobs
        self.connection = Connection(settings)
        self.bases = Bases(settings, blobs, self.connection)
        self._server = LinkServer()
        self._states = States()
        self._opener = Opener(self._server, self._states)
        self._grounds: dict[tuple[int, str, str], Ground] = {}
        self._view: View | None = None
        self._replaying = asyncio.Lock()
        self._epoch = Epoch(settings)
        self._generation = 0

    async def prepare(self, progress: Progress = no_progress, digest: str | None = None) -> Base:
        """Make sure a base exists; see `Engine.prepare`."""
        return (await self._once_more(lambda: self.bases.prepare(progress, digest))).base

    async def open(
        self,
        chain: Sequence[ChainStep],
        nonce: str,
        *,
        base: Base,
        sandbox_id: str,
        progress: Progress = no_progress,
        replayed: Replayed = ignore_replayed,
    ) -> Room:
        """Open a room on the state after the chain; see `Engine.open`."""

        async def attempt() -> DaggerRoom:
            ground = await self._ground(base, sandbox_id, progress)
            parent = await self._replay(ground, chain, base, progress, replayed)
            return await self._opener.open(ground, parent, nonce)

        return await self._once_more(attempt)

    async def ensure(
        self,
        chain: Sequence[ChainStep],
        *,
        base: Base,
        sandbox_id: str,
        progress: Progress = no_progress,
        replayed: Replayed = ignore_replayed,
    ) -> str:
        """Make the state after the chain exist; see `Engine.ensure`."""

        async def attempt() -> State:
            ground = await self._ground(base, sandbox_id, progress)
            return await self._replay(ground, chain, base, progress, replayed)

        return (await self._once_more(attempt)).key

    async def has(self, key: str) -> bool:
        """Whether this session has the state of a key."""
        return self.connection.is_open and self._states.get(key) is not None

    async def files(self, key: str, path: str = "", *, recursive: bool = False) -> list[FileInfo]:
        """List a directory of a cached state; see `Engine.files`."""
        view, state = self._look(key)
        return await self._noting(view.list(state, path, recursive=recursive))

    async def read(
        self, key: str, path: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Read a regular file of a cached state; see `Engine.read`."""
        view, state = self._look(key)
        place = await self._noting(view.take(state, path))
        with place.open("rb") as file:
            async for chunk in chunks(file, offset, length):
                yield chunk

    async def export_layer(self, key: str, max_bytes: int) -> bytes | None:
        """Return the layer of a state over its parent as an archive; see `Engine.export_layer`."""
        view, state = self._look(key)
        _, parent = self._look(state.parent_key)
        return await self._noting(view.pack(state, parent, max_bytes))

    async def evict(self, keys: Sequence[str] | None = None) -> int:
        """Forget cached states; see `Engine.evict`.

        The engine's cache cannot be emptied for one sandbox. To forget all of them a new epoch begins: chains
        are built on another root from now on (in every kernel of this data directory that starts later),
        and the engine collects the old layers when it needs the space.
        """
        if keys is None:
            for room in list(self._opener.rooms):
                if room.alive:
                    await room.close()
            self._epoch.begin()
            self._grounds.clear()
        dropped = self._states.drop(keys)
        if keys is None:
            self._states.clear()  # roots too
        return dropped

    async def describe(self) -> dict[str, Any]:
        """Return what `doctor` shows; see `Engine.describe`."""
        report: dict[str, Any] = {
            "engine": self.name,
            "available": True,
            "reasons": [],
            "remedies": [],
            "runner_host": self._settings.runner_host or "local container runtime",
            "cli": "",
            "version": "",
            "base": None,
            "base_built": False,
            "rooms": len(self._opener.rooms),
        }
        seconds = min(DESCRIBE_SECONDS, self._settings.connect_seconds + 1)
        try:
            report["cli"] = find_cli(self._settings)
            async with asyncio.timeout(seconds):
                await self.connection.client()
            report["version"] = self.connection.version
            current = await asyncio.to_thread(self.bases.current)
            report["base"], report["base_built"] = current, current is not None
        except Exception as error:  # doctor must get an answer whatever happens
            if isinstance(error, TimeoutError):
                error = TimeoutError(f"no answer within {seconds:g} s")
            told = faults.translate(error, "connecting")
            report["available"] = False
            report["reasons"], report["remedies"] = [told.what], [told.remedy]
        return report

    async def close(self) -> None:
        """End every room and the session."""
        for room in list(self._opener.rooms):
            await room.close()
        await self._server.close()
        await self.connection.close()
        self._states.clear()
        self._grounds.clear()

    # -- the session

    async def _once_more(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Do what comes before a step; once more if the session or the room broke meanwhile."""
        was_open = self.connection.is_open
        try:
            return await self._noting(attempt())
        except RoomLostError as error:
            if error.started:
                raise
        except DaggerKernelError:
            # A session that could not be opened is not tried again: that would double the waiting.
            if self.connection.is_open or not was_open:
                raise
        return await self._noting(attempt())

    async def _noting(self, work: Awaitable[T]) -> T:
        """Let the connection know of errors that mean that it broke."""
        try:
            result = await work
        except DaggerKernelError as error:
            if error.__cause__ is not None:
                self.connection.note(error.__cause__)
            raise
        self.connection.touch()
        return result

    async def _ground(self, base: Base, sandbox_id: str, progress: Progress) -> Ground:
        """Return what chains are built with in the session of now."""
        prepared = await self.bases.prepare(progress, base.digest)
        client = await self.connection.client()
        if self._generation != self.connection.generation:
            self._states.clear()
            self._grounds.clear()
            self._view = None
            self._generation = self.connection.generation
        await self._server.listen(self.connection.directory)
        path = host_path(self.connection.directory, sandbox_id)
        name = (self._generation, base.digest, path)
        if name not in self._grounds:
            with faults.translated("opening the link"):
                ground = Ground.on(
                    self._epoch.on(prepared.container),
                    client.host().unix_socket(path),
                    prepared.python,
                )
                self._grounds[name] = replace(ground, root=await ground.root.sync())
        ground = self._grounds[name]
        if self._view is None:
            self._view = View(ground, self.connection.directory)
        return ground

    def _look(self, key: str) -> tuple[View, State]:
        state = self._states.get(key) if self.connection.is_open else None
        if state is None or self._view is None:
            raise KeyError(key)
        return self._view, state

    # -- chains and rooms

    async def _replay(
        self,
        ground: Ground,
        chain: Sequence[ChainStep],
        base: Base,
        progress: Progress,
        replayed: Replayed,
    ) -> State:
        key = chain[0].parent_key if chain else root_key(base.digest, base.runner_digest)
        root = State(key=key, parent_key="", position=0, kind="root", container=ground.root)
        self._states.put(root)
        async with self._replaying:
            replay = Replay(
                ground,
                self._states,
                self._server,
                self._blobs,
                chain=chain,
                progress=progress,
                replayed=replayed,
            )
            return await replay.run(root)

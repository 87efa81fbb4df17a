"""The embedded engine: user namespaces and overlay layers, no daemon, no root."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

from ...errors import EngineUnavailableError, RoomLostError, RoomNotOpenedError
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
from ..link import Link
from . import archive, cgroups, seccomp
from .bases import Bases
from .collector import LayerCollector
from .layer import Layer
from .layers import LayerStore, make_room
from .policy import Policy
from .probe import probe
from .proxy import Proxy
from .replay import Replay
from .room import LocalRoom
from .view import View
from .zygote import Zygote

PATIENCE = 2
"""How often a room is tried whose layers are collected meanwhile."""


class LocalEngine(Engine):
    """See `Engine`. Layers, bases and the log share one data directory."""

    name = "local"
    puts_files_cheaply = True

    def __init__(self, settings: Settings, blobs: BlobSource) -> None:
        self._settings = settings
        self._blobs = blobs
        self.bases = Bases(settings, blobs)
        self.layers = LayerStore(settings.layers_path)
        self._zygotes: dict[str, Zygote] = {}
        self._uses: dict[str, str] = {}  # leases on bases, by digest
        self._places: dict[str, int] = {}  # which directory of layers they mounted
        self._rooms: set[LocalRoom] = set()
        self._roots: dict[str, str] = {}  # root key -> base digest
        self._policies: dict[str, Policy] = {}  # by base digest

    async def prepare(self, progress: Progress = no_progress, digest: str | None = None) -> Base:
        """Make sure a base exists and start its zygote; see `Engine.prepare`."""
        found = await asyncio.to_thread(probe)
        if not found.available:
            raise EngineUnavailableError(found.reason, engine=self.name, remedy=found.remedy)
        base = await self.bases.prepare(progress, digest)
        sources = await asyncio.to_thread(self.bases.sources, base.digest)
        self._policies[base.digest] = Policy.of(self._settings, sources)
        self._roots[root_key(base.digest, base.runner_digest)] = base.digest
        self.layers.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        await asyncio.to_thread(self.layers.sweep)
        self._zygote(base)
        await asyncio.to_thread(cgroups.here)  # while the zygote starts
        return base

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
        for attempt in range(1, PATIENCE + 1):
            parent = None
            try:
                parent = await self._replay(chain, base, progress, replayed)
                return await self._open_room(parent, nonce, base)
            except RoomLostError:
                # Collected since it was found, or while the next one was made: then it is made again.
                if attempt == PATIENCE or (parent is not None and self._has(parent)):
                    raise
        raise AssertionError

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
        return (await self._replay(chain, base, progress, replayed)).key

    def _has(self, layer: Layer) -> bool:
        return None not in self.layers.ground(layer)

    async def has(self, key: str) -> bool:
        """Whether the state of a key is cached now."""
        return key in self._roots or self.layers.get(key) is not None

    async def files(self, key: str, path: str = "", *, recursive: bool = False) -> list[FileInfo]:
        """List a directory of a cached state; see `Engine.files`."""
        view = self._view(key)
        return await asyncio.to_thread(view.list, path, recursive=recursive)

    async def read(
        self, key: str, path: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Read a regular file of a cached state; see `Engine.read`."""
        with os.fdopen(self._view(key).open(path), "rb") as file:
            async for chunk in chunks(file, offset, length):
                yield chunk

    async def export_layer(self, key: str, max_bytes: int) -> bytes | None:
        """Return the layer of a state over its parent as an archive; see `Engine.export_layer`."""
        place = self.layers.path(key)
        return await asyncio.to_thread(archive.pack, place, max_bytes)

    async def evict(self, keys: Sequence[str] | None = None) -> int:
        """Drop cached states that no room of this process stands on; see `Engine.evict`."""
        if keys is None:
            for room in list(self._rooms):
                if room.waiting:
                    await room.close()
        return await asyncio.to_thread(self.layers.evict, None if keys is None else list(keys))

    async def describe(self) -> dict[str, Any]:
        """Return what `doctor` shows; see `Engine.describe`."""
        found = await asyncio.to_thread(probe)
        interpreter = await asyncio.to_thread(self.bases.interpreter)
        current = await asyncio.to_thread(self.bases.current)
        return {
            "engine": self.name,
            "available": found.available,
            "reasons": [reason for reason in (found.reason, seccomp.missing()) if reason],
            "remedies": [
                *([found.remedy] if found.remedy else []),
                *([seccomp.REMEDY] if seccomp.missing() else []),
            ],
            "memory": "cgroup v2" if (await asyncio.to_thread(cgroups.here)).parent else "watched",
            "system_calls": "unfiltered" if seccomp.missing() else "filtered",
            "python": interpreter.version,
            "interpreter": interpreter.executable,
            "base": current,
            "base_built": bool(current and self.bases.exists(current)),
            "layers": os.fspath(self.layers.root),
            "network": self._settings.network,
            "rooms": len(self._rooms),
        }

    async def close(self) -> None:
        """End every room and zygote."""
        for room in list(self._rooms):
            if room.waiting:
                await room.close()
        for digest in list(self._zygotes):
            self._end_zygote(digest)
        await asyncio.to_thread(self._settle)

    def _settle(self) -> None:
        """Make the layers last; remove the least used ones above the quota."""
        self.layers.settle()
        collector = LayerCollector(self.layers)
        with contextlib.suppress(OSError):
            if collector.size() > self._settings.cache_bytes:
                collector.collect(self._settings.cache_bytes)

    def _end_zygote(self, digest: str) -> None:
        self._zygotes.pop(digest).close()
        self.bases.leases.end(self._uses.pop(digest, ""))

    def _view(self, key: str) -> View:
        if key in self._roots:
            return View([self.bases.path(self._roots[key]) / "fs"])
        layer = self.layers.get(key)
        if layer is None:
            raise KeyError(key)
        stack = [self.layers.root / name / "fs" for name in layer.lowers]
        return View([*stack, self.bases.path(layer.base) / "fs"])

    def _zygote(self, base: Base) -> Zygote:
        zygote = self._zygotes.get(base.digest)
        self.layers.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = os.stat(self.layers.root).st_ino  # nobody else's while a zygote has it mounted
        if zygote is not None and (not zygote.alive or self._places.get(base.digest) != place):
            # Ended from outside (its process and pipes are still ours), or it mounted a directory of
            # layers that somebody has removed since.
            self._end_zygote(base.digest)
            zygote = None
        if zygote is None:
            runner = self.bases.place_runner()
            self._uses[base.digest] = self.bases.use(base.digest, runner)
            zygote = Zygote.start(
                self._settings,
                self.bases.interpreter(),
                base=self.bases.path(base.digest),
                layers=self.layers.root,
                runner=runner,
                scratch=self.bases.root,
            )
            self._zygotes[base.digest], self._places[base.digest] = zygote, place
        return zygote

    async def _open_room(self, parent: Layer, nonce: str, base: Base) -> LocalRoom:
        zygote = self._zygote(base)
        await zygote.warm()
        directory = await make_room(self.layers, parent)
        cgroup = cgroups.here().make()
        try:
            number, connected = zygote.open(
                {
                    "lowers": [f"{name}/fs" for name in parent.lowers],
                    "upper": f"{directory}/fs",
                    "work": f"{directory}/work",
                    "network": self._settings.network,
                    "nonce": nonce,
                    "warm": True,
                    "processes": self._settings.processes,
                    "shm_bytes": self._settings.memory_bytes,
                    "seccomp": base64.b64encode(seccomp.program()).decode("ascii"),
                },
                cgroup.descriptors,
            )
        except BaseException:
            cgroup.remove()
            self.layers.drop(directory)
            raise
        cgroup.hand_over()
        proxy = Proxy(self._policies[base.digest])
        link: Link | None = None
        try:
            link = await Link.over(connected)
            hello = await link.receive()
            if hello is None or hello[0].get("nonce") != nonce:
                raise await self._not_opened(zygote, number)
            if self._settings.network == "proxy":
                await proxy.start(await zygote.listener(number))
        except BaseException:  # a cancelled standby too
            proxy.close()
            if link is not None:
                link.close()
            else:
                connected.close()
            zygote.kill(number)
            await zygote.exited(number)
            zygote.forget(number)
            cgroup.remove()
            self.layers.drop(directory)
            raise
        room = LocalRoom(
            link,
            nonce,
            parent,
            zygote=zygote,
            number=number,
            directory=directory,
            store=self.layers,
            proxy=proxy,
            cgroup=cgroup,
            ended=self._rooms.discard,
        )
        self._rooms.add(room)
        return room

    async def _not_opened(self, zygote: Zygote, number: int) -> RoomNotOpenedError:
        code = await zygote.exited(number)
        why = zygote.failures.get(number)
        if why is None:
            why = f"its runner ended with exit code {code}. {zygote.last_words()}".strip()
        return RoomNotOpenedError(f"The room could not be opened: {why}", engine=self.name)

    async def _replay(
        self, chain: Sequence[ChainStep], base: Base, progress: Progress, replayed: Replayed
    ) -> Layer:
        """Return the layer of the chain's last step, made again where it is missing."""
        root = chain[0].parent_key if chain else root_key(base.digest, base.runner_digest)
        self._roots[root] = base.digest
        replay = Replay(self.layers, self._blobs, partial(self._open_room, base=base), replayed)
        return await replay.run(chain, Layer(root, "", 0, (), base.digest), progress)

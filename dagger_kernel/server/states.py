"""What the REST API does with states: asks the engine where it holds them, else the log.

Coroutines of the server's event loop, because engines are.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..engines.base import no_progress
from ..errors import EngineError, EngineUnavailableError
from .incoming import Incoming
from .service import PAGE, SandboxService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ..engines.base import Engine, FileInfo
    from ..steps import Step

IDLE_SECONDS = 300.0
"""How long the server holds an engine that nobody asks."""


class StateFiles:
    """Files of any step's state: from the engine where it holds the state, else from the log.

    Parameters
    ----------
    service
        The log.
    """

    def __init__(self, service: SandboxService) -> None:
        self._service = service
        self._engine: Engine | None = None
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._restoring = 0
        self.incoming = Incoming(service.log, self.engine)

    async def engine(self) -> Engine | None:
        """Return the engine, or None if there is none on this machine."""
        async with self._lock:
            if self._engine is None:
                from ..engines.select import select_engine

                try:
                    self._engine = await select_engine(
                        self._service.settings, self._service.log.blobs
                    )
                except EngineError:
                    return None
            self._keep()
            return self._engine

    def _keep(self) -> None:
        """Hold the engine for a while: a connection to Dagger is a process and a session there."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(IDLE_SECONDS, self._let_go)

    def _let_go(self) -> None:
        if self._restoring:
            self._keep()
            return
        self._closing = asyncio.ensure_future(self.close())

    async def close(self) -> None:
        """Release the engine; the next question opens it again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.incoming.close()
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    async def describe(self) -> dict[str, Any]:
        """Return what the status shows of the engine."""
        engine = await self.engine()
        if engine is None:
            return {"name": "none", "available": False, "reasons": ["No engine can be used here."]}
        return {"name": engine.name} | await engine.describe()

    async def holds(self, key: str) -> Engine | None:
        """Return the engine if it holds a state now."""
        engine = await self.engine()
        try:
            return engine if engine is not None and await engine.has(key) else None
        except EngineError:
            return None

    async def listing(self, step: Step | None, path: str) -> dict[str, Any]:
        """List a directory of a state.

        Raises
        ------
        FileNotFoundError
        """
        if step is None:
            return {"path": path, "type": "directory", "complete": True, "entries": []}
        engine = await self.holds(step.key)
        if engine is not None:
            infos = await engine.files(step.key, path)
            entries = [
                {"path": info.path, "kind": info.kind, "size": info.size, "mtime": info.mtime}
                for info in infos
            ]
            return {"path": path, "type": "directory", "complete": True, "entries": entries}
        known = await asyncio.to_thread(self._service.known_files, step)
        return {
            "path": path,
            "type": "directory",
            "complete": False,
            "entries": _listing(known, path),
        }

    async def below(self, step: Step, path: str, most: int) -> list[FileInfo]:
        """Return what is below a directory of a state the engine holds, but for hidden names.

        It ends soon after so many entries: a cell can make endless ones.

        Raises
        ------
        FileNotFoundError, KeyError, EngineError
        """
        engine = await self.holds(step.key)
        if engine is None:
            raise KeyError(step.key)
        found: list[FileInfo] = []
        waiting = [path]
        while waiting and len(found) <= most:
            for info in await engine.files(step.key, waiting.pop()):
                if info.path.rpartition("/")[2].startswith("."):
                    continue
                found.append(info)
                if info.kind == "directory":
                    waiting.append(info.path)
        return sorted(found, key=lambda info: info.path)

    async def stat(self, step: Step, path: str) -> tuple[str, int]:
        """Return kind (``file``, ``directory`` ...) and size of a path in a state the engine holds.

        Raises
        ------
        FileNotFoundError, KeyError
        """
        engine = await self.holds(step.key)
        if engine is None:
            raise KeyError(step.key)
        parent, _, name = path.rpartition("/")
        for info in await engine.files(step.key, parent):
            if info.path.rpartition("/")[2] == name:
                return info.kind, info.size
        raise FileNotFoundError(path)

    async def cached(self, step: Step | None) -> list[str]:
        """Return the ids of a chain's last steps whose states the engine holds now.

        What is not among them would be replayed when it is needed.
        """
        engine = await self.engine()
        if engine is None or step is None:
            return []
        rows = await asyncio.to_thread(self._service.chain, step)
        try:
            return [one.id for one, _ in rows[-PAGE:] if await engine.has(one.key)]
        except EngineError:
            return []

    async def restore(self, step: Step) -> None:
        """Make the state after a step exist, by replay where it is not cached.

        Raises
        ------
        EngineError, LogError, StorageFullError
        """
        engine = await self.engine()
        if engine is None:
            raise EngineUnavailableError("No engine can be used here.")
        from ..sandbox.chains import chain_root, to_chain

        rows = await asyncio.to_thread(self._service.chain, step)
        chain = to_chain(rows, chain_root(rows))
        # Only its own base's digest means something to an engine; an upload may precede any base.
        ran = (one for one, _ in rows if one.engine == engine.name and one.base_digest)
        digest = next((one.base_digest for one in ran), None)
        self._restoring += 1
        try:
            base = await engine.prepare(no_progress, digest)
            await engine.ensure(chain, base=base, sandbox_id=step.sandbox_id)
        finally:
            self._restoring -= 1
            self._keep()

    async def read(self, step: Step, path: str, offset: int, length: int) -> AsyncIterator[bytes]:
        """Read a part of a file of a state the engine holds."""
        engine = await self.holds(step.key)
        if engine is None:
            raise KeyError(step.key)
        async for chunk in engine.read(step.key, path, offset=offset, length=length):
            self._keep()
            yield chunk


def _listing(known: dict[str, dict[str, Any]], path: str) -> list[dict[str, Any]]:
    prefix = path + "/" if path else ""
    entries: dict[str, dict[str, Any]] = {}
    for name, item in known.items():
        if not name.startswith(prefix):
            continue
        first, slash, _ = name[len(prefix) :].partition("/")
        full = prefix + first
        if slash:
            entries.setdefault(full, {"path": full, "kind": "directory", "size": 0, "mtime": None})
        else:
            entries[full] = {"path": full, "kind": "file", "size": item["size"], "mtime": None}
    if path and not entries:
        raise FileNotFoundError(path)
    return sorted(entries.values(), key=lambda entry: str(entry["path"]))

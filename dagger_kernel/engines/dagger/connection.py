"""One session with the engine per kernel process: opened when first needed, opened again if it broke."""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import EngineConnectionError
from ...settings import Settings
from . import faults
from .cli import SessionProcess

if TYPE_CHECKING:
    import dagger

PREFIX = "dagger-kernel-link-"
LOCK = "lock"
MAX_ROOT = 60
"""The address of a Unix socket has 107 bytes."""
QUIET_SECONDS = 20.0
"""A session unused for this long is asked whether it still lives before it is relied on."""
ANSWER_SECONDS = 5.0


class Connection:
    """The session. Belongs to one event loop.

    Attributes
    ----------
    directory
        A directory of this object's own, 0700. The session process works in it, so that the host path
        ``/proc/self/cwd/...`` is the same text in every kernel and another file in each.
    generation
        Counts sessions: what an earlier one made is of no use to a later one.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session: SessionProcess | None = None
        self._transport: Any = None
        self._client: dagger.Client | None = None
        self._opening = asyncio.Lock()
        self._broken = False
        self._used = 0.0
        self._lock_file = -1
        self.directory = Path()
        self.generation = 0
        self.version = ""

    @property
    def is_open(self) -> bool:
        """Whether there is a session that is not known to be broken."""
        return self._client is not None and not self._broken and self._alive

    async def client(self) -> dagger.Client:
        """Return the client, connected.

        Raises
        ------
        EngineUnavailableError, EngineConnectionError, EngineVersionError
        """
        async with self._opening:
            if self.is_open and not await self._answers():
                self._broken = True
            if not self.is_open:
                await self._close_session()
                await self._open()
            assert self._client is not None
            self.touch()
            return self._client

    def touch(self) -> None:
        """Note that the engine has just answered."""
        self._used = asyncio.get_running_loop().time()

    def note(self, error: BaseException) -> bool:
        """Take an error of an operation; return whether it means that the session is broken."""
        if faults.broke(error):
            self._broken = True
        return self._broken

    async def close(self) -> None:
        """End the session. Idempotent."""
        async with self._opening:
            await self._close_session()
            if self._lock_file >= 0:
                os.close(self._lock_file)
                self._lock_file = -1
                shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def _alive(self) -> bool:
        return self._session is not None and self._session.alive

    async def _open(self) -> None:
        seconds = self._settings.connect_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._connect()
        except TimeoutError:
            await self._close_session()
            where = self._settings.runner_host or "of the local container runtime"
            raise EngineConnectionError(
                f"The Dagger engine {where} did not answer within {seconds:g} s.",
                engine=faults.NAME,
                remedy=faults.REMEDIES[EngineConnectionError]
                + " A slow engine: raise DAGGER_KERNEL_CONNECT_SECONDS.",
            ) from None
        except BaseException:
            await self._close_session()
            raise
        self._broken = False
        self.generation += 1

    async def _connect(self) -> None:
        self._make_directory()
        # The SDK takes a second of CPU time to import: meanwhile the command connects.
        loading = asyncio.create_task(asyncio.to_thread(importlib.import_module, "dagger"))
        try:
            self._session = await SessionProcess.start(self._settings, self.directory)
            await loading
        finally:
            loading.cancel()
        import dagger
        from dagger.client._session import ConnectParams, SingleConnection

        with faults.translated("connecting"):
            params = ConnectParams(port=self._session.port, session_token=self._session.token)
            timeout = dagger.Timeout(None, connect=self._settings.connect_seconds)
            # Without retries: the SDK would send a step again that may have started.
            from dagger.client._config import ConnectConfig

            self._transport = SingleConnection(params, ConnectConfig(timeout=timeout, retry=None))
            await self._transport.connect()
            self._client = dagger.Client.from_connection(self._transport)
            self.version = await self._client.version()

    async def _answers(self) -> bool:
        """Whether a session that was quiet for long is alive."""
        if asyncio.get_running_loop().time() - self._used < QUIET_SECONDS:
            return True
        assert self._client is not None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._client.version()
        except Exception:
            return False
        return True

    async def _close_session(self) -> None:
        transport, self._transport, self._client = self._transport, None, None
        session, self._session = self._session, None
        if transport is not None:
            closing = asyncio.ensure_future(transport.close())
            await asyncio.wait([closing], timeout=ANSWER_SECONDS)
            closing.cancel()
            # A broken one cannot be closed well.
            await asyncio.gather(closing, return_exceptions=True)
        if session is not None:
            await session.end()

    def _make_directory(self) -> None:
        if self._lock_file >= 0:
            return
        root = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
        if not os.access(root, os.W_OK) or len(os.fspath(root)) > MAX_ROOT:
            root = Path("/tmp")  # noqa: S108 - the directory made in it is ours alone
        sweep(root)
        self.directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        fresh = self.directory / f"{LOCK}.new"
        self._lock_file = os.open(fresh, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(fresh, self.directory / LOCK)  # locked before another kernel's sweep can see it


def sweep(root: Path) -> None:
    """Remove what killed kernels of this user left: directories whose lock nobody holds."""
    for place in root.glob(f"{PREFIX}*/{LOCK}"):
        try:
            if place.parent.lstat().st_uid != os.getuid():
                continue
            handle = os.open(place, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place.parent, ignore_errors=True)
        except BlockingIOError:
            pass  # its kernel lives
        finally:
            os.close(handle)

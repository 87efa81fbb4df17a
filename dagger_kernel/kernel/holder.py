"""The sandbox's session of this kernel process, opened when it is first needed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from ..sandbox import Beside, SandboxSession
from ..settings import Settings

logger = logging.getLogger(__name__)


class SessionHolder:
    """Opens, replaces and closes the one session. Used on the main loop only.

    Parameters
    ----------
    kernel_name
        For the log: which kernelspec this is.
    environ
        The process's environment.
    """

    def __init__(self, kernel_name: str, environ: Mapping[str, str] | None = None) -> None:
        self._kernel_name = kernel_name
        self._environ = os.environ if environ is None else environ
        self._session: SandboxSession | None = None
        self._lock = asyncio.Lock()
        self._ending: asyncio.Future[None] | None = None

    @property
    def current(self) -> SandboxSession | None:
        """The session, if it was opened."""
        return self._session

    @property
    def notebook(self) -> str:
        """The notebook this kernel was started for by a Jupyter server; else empty."""
        return notebook_of_this_kernel(self._environ)

    async def get(self) -> SandboxSession:
        """Return the session, opening it on the first call.

        A failure is not remembered: the next cell tries again, for the user may have repaired
        the cause.

        Raises
        ------
        DaggerKernelError
            The settings or the log cannot be used.
        """
        async with self._lock:
            if self._session is None:
                settings = Settings.load(self._environ)
                self._session = await SandboxSession.open(
                    settings,
                    sandbox_id=settings.sandbox or None,
                    notebook=self.notebook,
                )
                self._session.beside = self._beside(settings)
            return self._session

    async def warm(self) -> None:
        """Open the session and prepare the first room, in the background.

        Nobody asked for it yet, so a failure is only logged; the first cell reports it.
        """
        try:
            (await self.get()).start_warming()
        except Exception:
            logger.info("The sandbox could not be prepared ahead", exc_info=True)

    async def reset(self) -> SandboxSession:
        """Leave the sandbox and begin a new, empty one."""
        session = await self.get()
        await session.end(restart=True)
        return await self._move(None)

    async def fork(self, seq: int | None) -> SandboxSession:
        """Leave the sandbox; go on in a new one that continues from a step of it (None: the last).

        Raises
        ------
        StepNotFoundError, SandboxBusyError, LogError
        """
        session = await self.get()
        new = await session.fork(seq)
        await session.end(restart=True)
        return await self._move(new)

    async def _move(self, sandbox_id: str | None) -> SandboxSession:
        async with self._lock:
            if self._session is not None:
                await self._session.close()
            settings = Settings.load(self._environ, sandbox="")
            self._session = await SandboxSession.open(
                settings, sandbox_id=sandbox_id, notebook="" if sandbox_id else self.notebook
            )
            self._session.beside = self._beside(settings)
        self._session.start_warming()
        return self._session

    def _beside(self, settings: Settings) -> Beside:
        return Beside(Path.cwd(), self.notebook, settings)

    async def end(self, *, restart: bool) -> None:
        """Close the session; on a notebook's Restart the next start begins a new sandbox."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end(restart=restart))
        # A second signal waits for the same end instead of cutting it short.
        await asyncio.shield(self._ending)

    async def _end(self, *, restart: bool) -> None:
        session = self._session
        if session is None:
            if not (restart and self.notebook):
                return
            session = await self.get()
        # A sandbox the user named in the settings stays the one to continue.
        if restart and self.notebook and session.id != session.settings.sandbox:
            await session.end(restart=True)
        await session.close()


def notebook_of_this_kernel(
    environ: Mapping[str, str], parent_environ: Mapping[str, str] | None = None
) -> str:
    """Return the notebook's path if a Jupyter server started this kernel for it.

    The server sets ``JPY_SESSION_NAME``, and every process below inherits it: papermill in
    another kernel's cell would resume that notebook's sandbox. So the name counts only if the
    parent does not have it itself.
    """
    name = environ.get("JPY_SESSION_NAME", "")
    if not name:
        return ""
    if parent_environ is None:
        parent_environ = _environ_of(os.getppid())
    return "" if parent_environ.get("JPY_SESSION_NAME") == name else name


def _environ_of(pid: int) -> dict[str, str]:
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        # Not readable: the parent is somebody else's process, so not a cell's.
        return {}
    pairs = (item.partition(b"=") for item in raw.split(b"\0") if item)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}

"""One open sandbox: run a cell, ask about the tip, interrupt, leave."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, BinaryIO

from ..engines.base import FileInfo, Progress, no_progress
from ..errors import SandboxDisabledError, SkillError
from ..log import LogStore
from ..settings import Settings
from ..steps import Result, Status, Step, child_key, content_nonce, fresh_nonce
from .beside import Beside
from .cell import Cell, CellResult, SilentListener, StepListener, progress_to, tell_beside
from .history import fork, rewind
from .intake import Intake
from .logbook import Logbook
from .reuse import content_of, may_share
from .rooms import Rooms
from .runs import Runs
from .secrets import Secrets
from .skills import Skill
from .tip import Tip
from .turn import Turn
from .uploads import Given, Uploaded


class SandboxSession:
    """One open sandbox. All methods belong to the event loop that opened it.

    Cells run one after another. The engine is chosen and connected when it is first needed.

    Attributes
    ----------
    beside
        What is put in before a cell because it lies beside the notebook; None: nothing.
    """

    def __init__(
        self, settings: Settings, logbook: Logbook, log: LogStore, sandbox_id: str
    ) -> None:
        self.settings = settings
        self.id = sandbox_id
        self._logbook = logbook
        self._log = log
        self._secrets = Secrets()
        self._tip = Tip(logbook, log, sandbox_id, self._secrets)
        self._turn = Turn(settings, logbook, sandbox_id)
        self._rooms = Rooms(settings, log.blobs, self._tip, sandbox_id)
        self._intake = Intake(settings, logbook, log, self._tip, sandbox_id)
        self.beside: Beside | None = None
        self._runs = Runs(settings, logbook, log, sandbox_id, self._tip, self._rooms, self._secrets)

    @classmethod
    async def open(
        cls, settings: Settings, *, sandbox_id: str | None = None, notebook: str = ""
    ) -> SandboxSession:
        """Open a sandbox: the named one, the notebook's latest one, or a new one.

        Opens the log and nothing else: no engine is contacted.

        Raises
        ------
        LogError, StorageFullError
        """
        logbook = Logbook(settings)
        try:
            log = await logbook.open()
            owner = settings.owner or getpass.getuser()
            wanted = sandbox_id or settings.sandbox
            row = await logbook.call(log.sandbox, wanted) if wanted else None
            if row is None and notebook:
                row = await logbook.call(log.latest_sandbox, owner, notebook)
            if row is None:
                row = await logbook.call(log.create_sandbox, owner, notebook)
            session = cls(settings, logbook, log, row.id)
            await session._tip.load()
            session._runs.session = await logbook.call(log.start_session, row.id)
        except BaseException:
            await logbook.close()
            raise
        return session

    @property
    def engine_name(self) -> str:
        """Name of the engine, empty before it was needed."""
        return self._rooms.engine_name

    @property
    def next_execution_count(self) -> int:
        """The last logged cell's number + 1."""
        return self._tip.next_execution_count

    def start_warming(self) -> None:
        """Prepare the engine and a standby in the background, if that needs no base build."""
        if self.settings.enabled:
            self._rooms.start_warming()

    async def run(self, cell: Cell, listener: StepListener) -> CellResult:
        """Run a cell as the next step.

        Raises
        ------
        SandboxDisabledError, SettingError, InterruptedByUser, CapacityError, SandboxBusyError, EngineError,
        LogError, StorageFullError
            The cell was not run; or, a `RoomLostError` that has ``started``, it was and its result
            is not known: then the log says so.
        """
        if not self.settings.enabled:
            raise SandboxDisabledError
        cell = replace(cell, env=self._secrets.environment(cell.env))
        self._runs.limits(cell)  # what cannot be used is told before anything waits
        progress = progress_to(listener)
        async with self._turn.sandbox(progress):
            engine = await self._turn.interruptible(self._rooms.engine())
            async with self._turn.place(engine.name, progress):
                await self._tip.refresh()
                if not cell.silent:
                    await self._turn.interruptible(self._take_in(listener))
                nonce = None
                if self.settings.reuse == "shared" and may_share(cell):
                    await self._turn.interruptible(self._rooms.prepare(progress))
                    nonce = content_nonce(
                        content_of(cell, self._runs.limits(cell).to_json(), self.settings)
                    )
                    if (done := await self._runs.reuse(cell, nonce, listener)) is not None:
                        return done
                room = await self._turn.interruptible(self._rooms.take(progress, nonce))
                return await self._runs.run(room, cell, listener)

    async def interrupt(self) -> None:
        """Interrupt what runs: the cell, or the queue, base build or replay before it. Idle: nothing."""
        if not await self._runs.interrupt():
            self._turn.interrupt()

    async def ask(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        """Answer ``complete``, ``inspect``, ``is_complete`` or ``variables`` on the tip's state.

        Raises
        ------
        DaggerKernelError, TimeoutError
        """
        async with self._turn.sandbox():
            await self._tip.refresh()
            room = await self._rooms.waiting()
            return await room.ask(kind, content) if room is not None else {}

    async def send_comm(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        """Hand a comm message to the running cell; dropped when none runs."""
        await self._runs.send_comm(message, buffers)

    async def upload(
        self, files: Iterable[Given | tuple[str, bytes | BinaryIO]], *, reuse_equal: bool = False
    ) -> Uploaded:
        """Put files into ``attachments/`` before the next cell; see `upload_files`.

        The files are taken in the log's thread, one after another: they may be opened as they come.

        Raises
        ------
        SandboxBusyError, LogError, StorageFullError
        """
        given = (file if isinstance(file, Given) else Given(*file) for file in files)
        async with self._turn.sandbox():
            done = await self._intake.upload(given, reuse_equal=reuse_equal)
        if done.step is not None:
            await self._rooms.drop_standby()
            self._rooms.put_in_soon()
        return done

    async def _take_in(self, listener: StepListener) -> None:
        """Log what the next cell is to find: skills, and files beside the notebook."""
        if self._intake.missing_skills:
            base = await self._rooms.prepare(progress_to(listener))
            async for skill in self._intake.mount(base, self._rooms.engine_name):
                if isinstance(skill, SkillError):
                    tell_beside(listener, str(skill))
                elif skill.requirements:
                    await self._install(skill, listener)
        if self.beside is not None:
            for text in await self._intake.take(self.beside):
                tell_beside(listener, text)

    async def _install(self, skill: Skill, listener: StepListener) -> None:
        """Install what a skill requires, as a step; another sandbox's equal one is taken where there is one."""
        cell = skill.installing(self.settings.limits)
        base = await self._rooms.prepare()
        nonce = content_nonce(["requirements", skill.name, skill.digest])
        key = child_key(self._tip.key(base), nonce)
        known = await self._logbook.call(self._log.find, key)
        if known is not None and known[1] is not None and known[1].status == Status.OK:
            if await self._runs.reuse(cell, nonce, SilentListener()) is not None:
                return
        elif known is not None:
            nonce = fresh_nonce()  # it failed there; an engine may have that state under its key
        progress = progress_to(listener)
        progress(f"installing what the skill {skill.name} requires")
        room = await self._rooms.take(progress, nonce)
        done = await self._runs.run(room, cell, SilentListener())
        progress("")
        if done.outcome.status != Status.OK:
            told = f"What the skill {skill.name} requires could not be installed"
            seq = done.step.seq if done.step else 0
            tell_beside(listener, f"{told}: step {seq} in the log has the reason.")

    async def rewind(self, seq: int) -> Step:
        """Continue from an earlier step (0: the base); the steps after it stay in the log.

        Raises
        ------
        StepNotFoundError, SandboxBusyError, LogError
        """
        async with self._turn.sandbox():
            step = await self._logbook.call(rewind, self._log, self.id, seq)
            await self._rooms.drop_standby()
            return step

    async def fork(self, seq: int | None = None) -> str:
        """Make a sandbox that continues from a step (None: the last one); return its id.

        Raises
        ------
        StepNotFoundError, SandboxBusyError, LogError
        """
        async with self._turn.sandbox():
            row = await self._logbook.call(fork, self._log, self.id, seq)
            return row.id

    async def files(
        self, path: str = "", *, recursive: bool = False, progress: Progress = no_progress
    ) -> list[FileInfo]:
        """List a directory of the tip (``path`` relative to ``/home/sandbox``).

        Raises
        ------
        FileNotFoundError, SandboxPathError, EngineError
        """
        key = await self._tip_key(progress)
        engine = await self._rooms.engine()
        return await engine.files(key, path, recursive=recursive)

    async def download(self, path: str, progress: Progress = no_progress) -> bytes:
        """Return the bytes of a file of the tip.

        Raises
        ------
        FileNotFoundError, SandboxPathError, EngineError
        """
        key = await self._tip_key(progress)
        engine = await self._rooms.engine()
        return b"".join([chunk async for chunk in engine.read(key, path)])

    async def _tip_key(self, progress: Progress) -> str:
        async with self._turn.sandbox(progress):
            await self._tip.refresh()
            return await self._rooms.ensure_tip(progress)

    @property
    def secrets(self) -> list[str]:
        """Names of the secrets that the next cell is given."""
        return self._secrets.names

    def give_secret(self, name: str, value: str | None = None) -> None:
        """Give a secret to the cells that follow, as an environment variable; None: the administrator's.

        It is in memory only, until the session ends or `forget_secret`.

        Raises
        ------
        SecretError, SettingError
        """
        self._secrets.give(name, value)
        self._tip.lend()

    def forget_secret(self, name: str) -> bool:
        """Take a secret away from the cells that follow; return whether there was one."""
        known = self._secrets.forget(name)
        self._tip.lend()
        return known

    async def history(self, **query: Any) -> list[Any]:
        """Return input history from the log; see `LogStore.history`."""
        owner = self.settings.owner or getpass.getuser()
        return await self._logbook.call(self._log.history, owner, **query)

    async def steps(self, after: int = 0) -> list[tuple[Step, Result | None]]:
        """Return the sandbox's logged steps."""
        return await self._logbook.call(self._log.steps, self.id, after=after)

    def status(self) -> dict[str, Any]:
        """Return what ``%sandbox`` shows."""
        base, tip = self._rooms.base, self._tip.step
        return {
            "id": self.id,
            "engine": self.engine_name or self.settings.engine,
            "base": base.description if base else "",
            "base_digest": base.digest if base else "",
            "steps": len(self._tip.chain),
            "tip": tip.seq if tip else 0,
            "limits": self.settings.limits.to_json(),
            "network": self.settings.network,
            "data_dir": self.settings.data_dir,
        }

    async def end(self, *, restart: bool) -> None:
        """Leave the sandbox for good when the user restarts: the next start begins a new one."""
        if restart:
            await self._logbook.call(self._log.end_sandbox, self.id)

    async def close(self) -> None:
        """Release everything; the sandbox stays in the log. Idempotent."""
        self._turn.interrupt()
        await self._rooms.close()
        await self._logbook.close()


async def run_source(
    session: SandboxSession, source: str, listener: StepListener | None = None
) -> CellResult:
    """Run Python source as the session's next cell: the shortest way, for scripts and tests."""
    cell = Cell(source=source, execution_count=session.next_execution_count)
    return await session.run(cell, listener or SilentListener())

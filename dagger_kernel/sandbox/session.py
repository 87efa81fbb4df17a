"""One open sandbox: run a cell, ask about the tip, interrupt, leave."""

from __future__ import annotations

import asyncio
import getpass
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, BinaryIO

from ..engines.base import FileInfo, Outcome, Progress, Room, no_progress
from ..errors import (
    DaggerKernelError,
    EngineError,
    LinkError,
    SandboxDisabledError,
    SettingError,
    SkillError,
)
from ..log import LogStore
from ..settings import Settings, maximum_limits
from ..steps import Kind, Limits, Result, Status, Step, child_key, content_nonce, fresh_nonce
from .beside import Beside
from .cell import Cell, CellResult, SilentListener, StepListener
from .chains import cell_request, repeats
from .history import fork, rewind
from .intake import Intake
from .logbook import Logbook
from .reuse import content_of, files_of, may_share, outcome_of, take_recorded, tell
from .rooms import Rooms
from .running import RunningStep
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
        self.number = 0
        self._logbook = logbook
        self._log = log
        self._secrets = Secrets()
        self._tip = Tip(logbook, log, sandbox_id, self._secrets)
        self._turn = Turn(settings, logbook, sandbox_id)
        self._rooms = Rooms(settings, log.blobs, self._tip, sandbox_id)
        self._intake = Intake(settings, logbook, log, self._tip, sandbox_id)
        self.beside: Beside | None = None
        self._room: Room | None = None
        self._starting = self._interrupt_due = False

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
            session.number = await logbook.call(log.start_session, row.id)
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
        self._limits(cell)  # what cannot be used is told before anything waits
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
                        content_of(cell, self._limits(cell).to_json(), self.settings)
                    )
                    if (done := await self._reuse(cell, nonce, listener)) is not None:
                        return done
                room = await self._turn.interruptible(self._rooms.take(progress, nonce))
                self._starting, self._interrupt_due = True, False
                try:
                    return await self._run_in(room, cell, listener)
                finally:
                    self._starting = False

    async def _reuse(self, cell: Cell, nonce: str, listener: StepListener) -> CellResult | None:
        """Take the result of an equal cell on an equal state, if the log has one."""
        base = self._rooms.base
        assert base is not None
        step = self._new_step(cell, self._tip.key(base), nonce)
        found = await self._logbook.call(take_recorded, self._log, step)
        if found is None:
            return None
        step, result = found
        self._tip.advance(step, result)
        tell(result, listener)
        files = await self._logbook.call(files_of, self._log, result)
        outcome = outcome_of(result)
        return CellResult(step=step, result=result, outcome=outcome, drift=[], files=files)

    def _limits(self, cell: Cell) -> Limits:
        limits = cell.limits or self.settings.limits
        if (name := limits.unusable()) is not None:
            raise SettingError(name, getattr(limits, name), "more than zero")
        return limits.capped(maximum_limits())

    async def _run_in(self, room: Room, cell: Cell, listener: StepListener) -> CellResult:
        drift, self._tip.drift.lines = self._tip.drift.lines, []
        count = cell.execution_count if cell.store_history else None
        running = RunningStep(listener, count, self._secrets.mask)
        step = self._new_step(cell, room.parent_key, room.nonce)
        running.tell_capped(cell.limits, step.limits)
        try:
            if not cell.silent:
                step = await self._logbook.call(self._log.append, step)
            outcome = running.outcome(await self._deliver(room, step, cell, running))
        except (EngineError, LinkError) as error:
            await room.close()
            if not cell.silent:
                await self._record_loss(step, running, error)
            raise
        except BaseException:
            await room.close()
            raise
        if cell.silent:
            await room.discard()
            self._rooms.stand_by()
            result = running.result(step, outcome, [])
            return CellResult(step=None, result=result, outcome=outcome, drift=drift, files=[])
        try:
            running.tell_refused(outcome.usage.get("hosts", {}))
            files, exported = await self._logbook.call(running.store_files, self._log.blobs)
            repeatable = repeats(outcome.status, outcome.usage)
            later = repeatable and not cell.skill
            layer = None if later else await self._keep_layer(room, step, running, repeatable)
            result = running.result(step, outcome, files, layer)
            result = await self._logbook.call(self._log.finish, result)
        except BaseException:
            # The log cannot take the result, so the step has no effect; its room gives its space back.
            await room.close()
            raise
        self._tip.advance(step, result)
        if later:
            self._rooms.commit_later(room, step.key)
        else:
            self._rooms.stand_by()
        return CellResult(step=step, result=result, outcome=outcome, drift=drift, files=exported)

    async def _deliver(self, room: Room, step: Step, cell: Cell, running: RunningStep) -> Outcome:
        request = cell_request(step) | {
            "silent": cell.silent,
            "user_expressions": cell.user_expressions,
            "env": cell.env,
        }
        self._room = room
        running_step = asyncio.ensure_future(room.run(request, running))
        await asyncio.sleep(0)  # the step is on its way now
        try:
            if self._interrupt_due:
                await room.interrupt()
            return await running_step
        finally:
            self._room = None

    def _new_step(self, cell: Cell, parent_key: str, nonce: str) -> Step:
        base = self._rooms.base
        assert base is not None
        payload: dict[str, Any] = {
            "execution_count": cell.execution_count,
            "store_history": cell.store_history,
            "allow_stdin": cell.allow_stdin,
            "session": cell.session or self.number,
            "exclude": self.settings.export_exclude.split(),
        }
        if self.settings.recompute:
            payload["recompute"] = True
        if cell.cell_id:
            payload["cell_id"] = cell.cell_id
        if cell.skill:
            payload["skill"] = cell.skill
        if cell.env:
            payload["secrets"] = sorted(cell.env)
        return Step(
            id=uuid.uuid4().hex,
            sandbox_id=self.id,
            seq=0,
            parent_id=self._tip.step.id if self._tip.step else None,
            kind=Kind.CELL,
            language=cell.language,
            source=cell.source,
            payload=payload,
            limits=self._limits(cell),
            nonce=nonce,
            base_digest=base.digest,
            runner_digest=base.runner_digest,
            engine=self._rooms.engine_name,
            key=child_key(parent_key, nonce),
        )

    async def _keep_layer(
        self, room: Room, step: Step, running: RunningStep, repeatable: bool
    ) -> str | None:
        """Store the layer difference of a step that a replay cannot or should not repeat; return its digest.

        None: it is larger than the setting ``layer_bytes``; then a step that cannot be repeated keeps no
        effect.
        """
        engine = await self._rooms.engine()
        await room.commit(step.key)
        archive = await engine.export_layer(step.key, self.settings.layer_bytes)
        if archive is None and repeatable:
            return None
        if archive is None:
            await engine.evict([step.key])
            running.tell(
                f"What this cell changed is more than {self.settings.layer_bytes} bytes "
                "(DAGGER_KERNEL_LAYER_BYTES) and cannot be repeated: variables and files are as before it."
            )
            return None
        return await self._logbook.call(self._log.blobs.put, archive)

    async def _record_loss(
        self, step: Step, running: RunningStep, error: DaggerKernelError
    ) -> None:
        """Log that a step may have run but told no result: it has no effect."""
        running.outputs.take({"type": "error", **error.as_error_content()})
        lost = running.result(step, Outcome(status=Status.LOST, reason="engine"), [])
        self._tip.advance(step, await self._logbook.call(self._log.finish, lost))
        self._rooms.stand_by()

    async def interrupt(self) -> None:
        """Interrupt what runs: the cell, or the queue, base build or replay before it. Idle: nothing."""
        if self._room is not None:
            await self._room.interrupt()
        elif self._starting:
            self._interrupt_due = True  # while the step is being logged
        else:
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
        if self._room is not None:
            sized = b"".join(len(b).to_bytes(4, "big") + b for b in buffers)
            await self._room.send_comm({**message, "buffers": len(buffers)}, sized)

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
            if await self._reuse(cell, nonce, SilentListener()) is not None:
                return
        elif known is not None:
            nonce = fresh_nonce()  # it failed there; an engine may have that state under its key
        progress = progress_to(listener)
        progress(f"installing what the skill {skill.name} requires")
        room = await self._rooms.take(progress, nonce)
        done = await self._run_in(room, cell, SilentListener())
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

    def history(self, **query: Any) -> list[Any]:
        """Return input history from the log; see `LogStore.history`."""
        return self._log.history(self.settings.owner or getpass.getuser(), **query)

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


def tell_beside(listener: StepListener, text: str) -> None:
    """Tell the user something that is no part of the cell's output in the log."""
    head = {"type": "stream", "name": "stderr", "text": f"[dagger_kernel] {text}\n"}
    listener.event(head, b"")


def progress_to(listener: StepListener) -> Progress:
    """Return what shows a listener the state of long work."""

    def progress(text: str) -> None:
        listener.event({"type": "progress", "text": text}, b"")

    return progress


async def run_source(
    session: SandboxSession, source: str, listener: StepListener | None = None
) -> CellResult:
    """Run Python source as the session's next cell: the shortest way, for scripts and tests."""
    cell = Cell(source=source, execution_count=session.next_execution_count)
    return await session.run(cell, listener or SilentListener())

"""One open sandbox: run a cell, ask about the tip, interrupt, leave."""

from __future__ import annotations

import asyncio
import getpass
import uuid
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, BinaryIO, TypeVar

from ..engines.base import Base, ChainStep, Engine, FileInfo, Outcome, Room, no_progress
from ..engines.select import select_engine
from ..errors import DaggerKernelError, EngineError, RoomLostError, SandboxDisabledError
from ..log import LogStore, SandboxLock, Slots
from ..settings import Settings, maximum_limits
from ..steps import Kind, Result, Status, Step, child_key, content_nonce, fresh_nonce, root_key
from .cell import Cell, CellResult, InterruptedByUser, SilentListener, StepListener
from .chains import cell_request, chain_root, chain_step, to_chain
from .drift import DriftFinder
from .history import rewind
from .logbook import Logbook
from .running import RunningStep
from .standby import Standby
from .uploads import Uploaded, upload_files

T = TypeVar("T")
LOCK_SECONDS = 10.0


class SandboxSession:
    """One open sandbox. All methods belong to the event loop that opened it.

    Cells run one after another. The engine is chosen and connected when it is first needed.
    """

    def __init__(
        self, settings: Settings, logbook: Logbook, log: LogStore, sandbox_id: str
    ) -> None:
        self.settings = settings
        self.id = sandbox_id
        self._logbook = logbook
        self._log = log
        self._engine: Engine | None = None
        self._base: Base | None = None
        self._recorded_base: tuple[str, str] | None = None  # engine, digest
        self._standby = Standby(settings.standby_idle_seconds)
        self._turn = asyncio.Lock()
        self._tip: Step | None = None
        self._chain: list[ChainStep] = []
        self._results: dict[str, Result] = {}
        self._drift = DriftFinder(self._results)
        self._room: Room | None = None
        self._opening: asyncio.Task[Any] | None = None
        self._committing: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._interrupted = False
        self._lock = SandboxLock(settings, sandbox_id)
        self.next_execution_count = 1

    @classmethod
    async def open(
        cls,
        settings: Settings,
        *,
        sandbox_id: str | None = None,
        notebook: str = "",
        kernel_name: str = "",  # noqa: ARG003
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
            await session._load()
        except BaseException:
            await logbook.close()
            raise
        return session

    @property
    def engine_name(self) -> str:
        """Name of the engine, empty before it was needed."""
        return self._engine.name if self._engine else ""

    @property
    def tip(self) -> Step | None:
        """The step whose state the next one continues."""
        return self._tip

    async def _load(self) -> None:
        """Read the chain from the log."""
        tip = await self._logbook.call(self._log.tip, self.id)
        steps = await self._logbook.call(self._log.chain, tip.id) if tip else []
        self._tip = tip
        self._chain = to_chain(steps, chain_root(steps))
        # An upload may come before any base: the first step that ran tells it.
        ran = next((step for step, _ in steps if step.base_digest and step.engine), None)
        self._recorded_base = (ran.engine, ran.base_digest) if ran else None
        self._results.clear()
        self._results.update({step.key: result for step, result in steps if result})
        counts = [result.execution_count or 0 for _, result in steps if result]
        self.next_execution_count = max(counts, default=0) + 1

    def start_warming(self) -> None:
        """Prepare the engine and a standby in the background, if that needs no base build."""
        if self._warming is None and self.settings.enabled:
            self._warming = asyncio.create_task(self._warm())

    async def _warm(self) -> None:
        try:
            engine = await self._get_engine()
            report = await engine.describe()
            if report.get("base_built"):
                await self._prepare_base(no_progress)
                self._prepare_standby()
        except (DaggerKernelError, OSError):
            pass  # the first cell meets the same error and tells it

    async def run(self, cell: Cell, listener: StepListener) -> CellResult:
        """Run a cell as the next step.

        Raises
        ------
        SandboxDisabledError, InterruptedByUser, CapacityError, SandboxBusyError, EngineError,
        LogError, StorageFullError
            The cell was not run.
        """
        if not self.settings.enabled:
            raise SandboxDisabledError
        async with self._turn:
            self._interrupted = False

            def progress(text: str) -> None:
                listener.event({"type": "progress", "text": text}, b"")

            async with self._holding():
                slots = Slots(self.settings, self.settings.engine)
                slot = await self._interruptible(self._take_slot(slots, progress))
                try:
                    return await self._run(cell, listener, progress)
                finally:
                    await self._logbook.call(slot.release)

    async def _take_slot(self, slots: Slots, progress: Any) -> Any:
        loop = asyncio.get_running_loop()

        def position(place: int) -> None:
            text = f"waiting for a free place: {place} in the queue" if place else ""
            loop.call_soon_threadsafe(progress, text)

        return await asyncio.to_thread(slots.acquire, position)

    async def _run(self, cell: Cell, listener: StepListener, progress: Any) -> CellResult:
        tip = await self._logbook.call(self._log.tip, self.id)
        if (tip.id if tip else None) != (self._tip.id if self._tip else None):
            await self._load()  # somebody else appended: another kernel, the server, an upload
        room = await self._interruptible(self._take_room(cell, progress))
        drift, self._drift.lines = self._drift.lines, []
        running = RunningStep(listener, cell.execution_count if cell.store_history else 0)
        step = self._new_step(cell, room)
        if not cell.silent:
            try:
                step = await self._logbook.call(self._log.append, step)
            except BaseException:
                await room.close()
                raise
        request = cell_request(step) | {
            "silent": cell.silent,
            "user_expressions": cell.user_expressions,
            "env": cell.env,
        }
        self._room = room
        try:
            outcome = await room.run(request, running)
        except EngineError as error:
            await room.close()
            if not cell.silent:
                await self._record_loss(step, running, error)
            raise
        finally:
            self._room = None
        if cell.silent:
            await room.discard()
            self._prepare_standby()
            result = running.result(step, outcome, [])
            return CellResult(step=None, result=result, outcome=outcome, drift=drift, files=[])
        files, exported = await self._logbook.call(running.store_files, self._log.blobs)
        layer = await self._keep_unrepeatable(room, step, outcome)
        result = running.result(step, outcome, files, layer)
        result = await self._logbook.call(self._log.finish, result)
        self._advance(step, result)
        self._committing = asyncio.create_task(self._commit(room, step, outcome))
        return CellResult(step=step, result=result, outcome=outcome, drift=drift, files=exported)

    def _new_step(self, cell: Cell, room: Room) -> Step:
        assert self._engine is not None
        assert self._base is not None
        payload: dict[str, Any] = {
            "execution_count": cell.execution_count,
            "store_history": cell.store_history,
            "allow_stdin": cell.allow_stdin,
            "session": cell.session,
        }
        if cell.cell_id:
            payload["cell_id"] = cell.cell_id
        if cell.env:
            payload["secrets"] = sorted(cell.env)
        return Step(
            id=uuid.uuid4().hex,
            sandbox_id=self.id,
            seq=0,
            parent_id=self._tip.id if self._tip else None,
            kind=Kind.CELL,
            language=cell.language,
            source=cell.source,
            payload=payload,
            limits=(cell.limits or self.settings.limits).capped(maximum_limits()),
            nonce=room.nonce,
            base_digest=self._base.digest,
            runner_digest=self._base.runner_digest,
            engine=self._engine.name,
            key=child_key(room.parent_key, room.nonce),
        )

    async def _take_room(self, cell: Cell, progress: Any) -> Room:
        """Return a room on the tip: the standby if it fits, else a new one."""
        if self._committing is not None:
            await self._committing
        await self._prepare_base(progress)
        if self.settings.reuse == "shared":
            content = [str(cell.language), cell.source, cell.execution_count]
            return await self._open_room(content_nonce(content), progress)
        room = await self._standby.take(self._tip_key())
        return room or await self._open_room(fresh_nonce(), progress)

    async def _open_room(self, nonce: str, progress: Any) -> Room:
        engine = await self._get_engine()
        assert self._base is not None
        return await engine.open(
            self._chain,
            nonce,
            base=self._base,
            sandbox_id=self.id,
            progress=progress,
            replayed=self._drift.replayed,
        )

    def _tip_key(self) -> str:
        assert self._base is not None
        if self._chain:
            return self._chain[-1].key
        return root_key(self._base.digest, self._base.runner_digest)

    async def _get_engine(self) -> Engine:
        if self._engine is None:
            self._engine = await select_engine(self.settings, self._log.blobs)
        return self._engine

    async def _prepare_base(self, progress: Any) -> None:
        engine = await self._get_engine()
        if self._base is None:
            name, digest = self._recorded_base or ("", "")
            self._base = await engine.prepare(progress, digest if name == engine.name else None)

    def _prepare_standby(self) -> None:
        if self.settings.standby and self.settings.reuse == "none" and self._base is not None:
            self._standby.prepare(lambda: self._open_room(fresh_nonce(), no_progress))

    def _advance(self, step: Step, result: Result) -> None:
        entry = chain_step(step, result, self._tip_key())
        if entry is not None:
            self._chain.append(entry)
        self._results[step.key] = result
        self._tip = step
        if result.execution_count:
            self.next_execution_count = max(self.next_execution_count, result.execution_count + 1)

    async def _commit(self, room: Room, step: Step, outcome: Outcome) -> None:
        """Make the layer while the user reads, then the next standby."""
        try:
            if outcome.status in (Status.OK, Status.ERROR):
                await room.commit(step.key)
        except (DaggerKernelError, OSError):
            return  # the layer is a cache entry: the next cell replays the step
        self._prepare_standby()

    async def _keep_unrepeatable(self, room: Room, step: Step, outcome: Outcome) -> str | None:
        """Store the layer difference of a step that a replay cannot repeat; return its digest."""
        if outcome.status in (Status.OK, Status.ERROR):
            return None
        engine = await self._get_engine()
        await room.commit(step.key)
        archive = await engine.export_layer(step.key, self.settings.layer_bytes)
        if archive is None:
            await engine.evict([step.key])
            return None
        return await self._logbook.call(self._log.blobs.put, archive)

    async def _record_loss(self, step: Step, running: RunningStep, error: EngineError) -> None:
        """Log that a step may have run but told no result: it has no effect."""
        if not (isinstance(error, RoomLostError) and not error.started):
            running.outputs.take({"type": "error", **error.as_error_content()})
        outcome = Outcome(status=Status.LOST, reason="engine")
        result = await self._logbook.call(self._log.finish, running.result(step, outcome, [], None))
        self._advance(step, result)
        self._prepare_standby()

    async def _interruptible(self, work: Awaitable[T]) -> T:
        """Wait for work before the cell starts; `interrupt` stops it.

        Raises
        ------
        InterruptedByUser
        """
        task = asyncio.ensure_future(work)
        self._opening = task
        try:
            return await task
        except asyncio.CancelledError:
            if self._interrupted:
                raise InterruptedByUser from None
            task.cancel()
            raise
        finally:
            self._opening = None

    async def interrupt(self) -> None:
        """Interrupt what runs: the cell, or the queue, base build or replay before it. Idle: nothing."""
        if self._room is not None:
            await self._room.interrupt()
        elif self._opening is not None:
            self._interrupted = True
            self._opening.cancel()

    async def ask(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        """Answer ``complete``, ``inspect``, ``is_complete`` or ``variables`` on the tip's state.

        Raises
        ------
        DaggerKernelError, TimeoutError
        """
        async with self._turn:
            if self._committing is not None:
                await self._committing
            await self._prepare_base(no_progress)
            room = await self._standby.peek(self._tip_key())
            if room is None:
                self._standby.prepare(lambda: self._open_room(fresh_nonce(), no_progress))
                room = await self._standby.peek(self._tip_key())
            if room is None:
                return {}
            return await room.ask(kind, content)

    async def send_comm(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        """Hand a comm message to the running cell; dropped when none runs."""
        if self._room is not None:
            sized = b"".join(len(b).to_bytes(4, "big") + b for b in buffers)
            await self._room.send_comm({**message, "buffers": len(buffers)}, sized)

    def history(self, **query: Any) -> list[Any]:
        """Return input history from the log; see `LogStore.history`."""
        owner = self.settings.owner or getpass.getuser()
        return self._log.history(owner, **query)

    def status(self) -> dict[str, Any]:
        """Return what ``%sandbox`` shows."""
        return {
            "id": self.id,
            "engine": self.engine_name or self.settings.engine,
            "base": self._base.description if self._base else "",
            "base_digest": self._base.digest if self._base else "",
            "steps": len(self._chain),
            "tip": self._tip.seq if self._tip else 0,
            "limits": self.settings.limits.to_json(),
            "network": self.settings.network,
            "data_dir": self.settings.data_dir,
        }

    async def upload(self, files: list[tuple[str, bytes | BinaryIO]]) -> Uploaded:
        """Put files into ``attachments/`` before the next cell; see `upload_files`.

        Raises
        ------
        SandboxBusyError, LogError, StorageFullError
        """
        async with self._turn, self._holding():
            done = await self._logbook.call(upload_files, self._log, self.id, files, self.settings)
            await self._standby.drop()
            return done

    async def rewind(self, seq: int) -> Step:
        """Continue from an earlier step (0: the base); the steps after it stay in the log.

        Raises
        ------
        StepNotFoundError, SandboxBusyError, LogError
        """
        async with self._turn, self._holding():
            step = await self._logbook.call(rewind, self._log, self.id, seq)
            await self._standby.drop()
            return step

    async def tip_key(self, progress: Any = no_progress) -> str:
        """Make the tip's state exist and return its key, for reading files from it.

        Raises
        ------
        EngineError, ReplayError
        """
        async with self._turn:
            if self._committing is not None:
                await self._committing
            tip = await self._logbook.call(self._log.tip, self.id)
            if (tip.id if tip else None) != (self._tip.id if self._tip else None):
                await self._load()
            await self._prepare_base(progress)
            engine = await self._get_engine()
            assert self._base is not None
            return await engine.ensure(
                self._chain,
                base=self._base,
                sandbox_id=self.id,
                progress=progress,
                replayed=self._drift.replayed,
            )

    async def files(self, path: str = "", *, recursive: bool = False) -> list[FileInfo]:
        """List a directory of the tip (``path`` relative to ``/home/sandbox``)."""
        key = await self.tip_key()
        engine = await self._get_engine()
        return await engine.files(key, path, recursive=recursive)

    async def download(self, path: str) -> bytes:
        """Return the bytes of a file of the tip.

        Raises
        ------
        FileNotFoundError, SandboxPathError
        """
        key = await self.tip_key()
        engine = await self._get_engine()
        return b"".join([chunk async for chunk in engine.read(key, path)])

    @asynccontextmanager
    async def _holding(self) -> AsyncIterator[None]:
        await self._logbook.call(self._lock.acquire, LOCK_SECONDS)
        try:
            yield
        finally:
            await self._logbook.call(self._lock.release)

    async def steps(self, after: int = 0) -> list[tuple[Step, Result | None]]:
        """Return the sandbox's logged steps."""
        return await self._logbook.call(self._log.steps, self.id, after=after)

    async def end(self, *, restart: bool) -> None:
        """Leave the sandbox for good when the user restarts: the next start begins a new one."""
        if restart:
            await self._logbook.call(self._log.end_sandbox, self.id)

    async def close(self) -> None:
        """Release everything; the sandbox stays in the log. Idempotent."""
        for task in (self._warming, self._opening):
            if task is not None:
                task.cancel()
        if self._committing is not None:
            await asyncio.gather(self._committing, return_exceptions=True)
        await self._standby.drop()
        if self._engine is not None:
            await self._engine.close()
            self._engine = None
        await self._logbook.close()


async def run_source(
    session: SandboxSession, source: str, listener: StepListener | None = None
) -> CellResult:
    """Run Python source as the session's next cell: the shortest way, for scripts and tests."""
    cell = Cell(source=source, execution_count=session.next_execution_count)
    return await session.run(cell, listener or SilentListener())

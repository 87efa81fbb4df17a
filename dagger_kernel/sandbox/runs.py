"""Running one cell in a room: log the step, deliver it, keep what it did."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from ..engines.base import Outcome, Room
from ..errors import DaggerKernelError, EngineError, LinkError, SettingError
from ..log import LogStore
from ..settings import Settings, maximum_limits
from ..steps import Kind, Limits, Status, Step, child_key
from .cell import Cell, CellResult, StepListener
from .chains import cell_request, repeats
from .logbook import Logbook
from .reuse import files_of, outcome_of, take_recorded, tell
from .rooms import Rooms
from .running import RunningStep
from .secrets import Secrets
from .tip import Tip


class Runs:
    """Runs the cells of one sandbox; the caller holds its lock.

    Attributes
    ----------
    session
        Number of the kernel's session, for the history.
    """

    def __init__(
        self,
        settings: Settings,
        logbook: Logbook,
        log: LogStore,
        sandbox_id: str,
        tip: Tip,
        rooms: Rooms,
        secrets: Secrets,
    ) -> None:
        self.session = 0
        self._settings = settings
        self._logbook = logbook
        self._log = log
        self._sandbox_id = sandbox_id
        self._tip = tip
        self._rooms = rooms
        self._secrets = secrets
        self._room: Room | None = None
        self._starting = self._interrupt_due = False

    def limits(self, cell: Cell) -> Limits:
        """Return the limits that hold for a cell: its own or the settings', below the administrator's.

        Raises
        ------
        SettingError
        """
        limits = cell.limits or self._settings.limits
        if (name := limits.unusable()) is not None:
            raise SettingError(name, getattr(limits, name), "more than zero")
        return limits.capped(maximum_limits())

    async def reuse(self, cell: Cell, nonce: str, listener: StepListener) -> CellResult | None:
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

    async def run(self, room: Room, cell: Cell, listener: StepListener) -> CellResult:
        """Run a cell in a room on the tip, and move the tip.

        Raises
        ------
        EngineError, LinkError, LogError, StorageFullError
        """
        self._starting, self._interrupt_due = True, False
        try:
            return await self._run(room, cell, listener)
        finally:
            self._starting = False

    async def _run(self, room: Room, cell: Cell, listener: StepListener) -> CellResult:
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
            "session": cell.session or self.session,
            "exclude": self._settings.export_exclude.split(),
        }
        if self._settings.recompute:
            payload["recompute"] = True
        if cell.cell_id:
            payload["cell_id"] = cell.cell_id
        if cell.skill:
            payload["skill"] = cell.skill
        if cell.env:
            payload["secrets"] = sorted(cell.env)
        return Step(
            id=uuid.uuid4().hex,
            sandbox_id=self._sandbox_id,
            seq=0,
            parent_id=self._tip.step.id if self._tip.step else None,
            kind=Kind.CELL,
            language=cell.language,
            source=cell.source,
            payload=payload,
            limits=self.limits(cell),
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
        archive = await engine.export_layer(step.key, self._settings.layer_bytes)
        if archive is None and repeatable:
            return None
        if archive is None:
            await engine.evict([step.key])
            running.tell(
                f"What this cell changed is more than {self._settings.layer_bytes} bytes "
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

    async def interrupt(self) -> bool:
        """Interrupt the cell that runs, or will in a moment; return whether there is one."""
        if self._room is not None:
            await self._room.interrupt()
        elif self._starting:
            self._interrupt_due = True  # while the step is being logged
        else:
            return False
        return True

    async def send_comm(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        """Hand a comm message to the running cell; dropped when none runs."""
        if self._room is not None:
            sized = b"".join(len(b).to_bytes(4, "big") + b for b in buffers)
            await self._room.send_comm({**message, "buffers": len(buffers)}, sized)

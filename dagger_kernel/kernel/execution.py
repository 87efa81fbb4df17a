"""One cell from request to reply: whatever happens on the way, there is exactly one."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from ..errors import DaggerKernelError
from ..sandbox import Cell, CellResult, InterruptedByUser, SandboxSession
from ..steps import Language, Limits, Status
from . import magics
from .comms import CommRelay
from .files import file_bundles, file_record
from .frames import error_content, expressions_of, message_of, payload_of
from .holder import SessionHolder
from .output import CellOutput
from .request import ExecuteRequest
from .stdin import StdinRefusedError

logger = logging.getLogger(__name__)


@dataclass
class Reply:
    """Content and metadata of an ``execute_reply``."""

    content: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict)


class CellExecution:
    """Runs one cell and listens to it (`dagger_kernel.sandbox.StepListener`).

    Used on the main loop only, once.

    Parameters
    ----------
    request
        What to run.
    number
        The cell's execution count while it runs.
    opened
        The session, or why it could not be opened.
    language
        The kernel's.
    parent
        The request's message, the parent of everything published.
    """

    def __init__(
        self,
        request: ExecuteRequest,
        number: int,
        opened: SandboxSession | BaseException | None,
        *,
        language: Language,
        holder: SessionHolder,
        output: CellOutput,
        comms: CommRelay,
        ask: magics.Ask,
        parent: dict[str, Any],
    ) -> None:
        self._request, self._number, self._language = request, number, language
        self._opened = opened
        self._holder, self._output, self._comms = holder, output, comms
        self._ask, self.parent = ask, parent
        self._interrupted = False
        self._running: SandboxSession | None = None
        self._error: dict[str, Any] | None = None
        self._question: asyncio.Future[str] | None = None

    async def run(self) -> Reply:
        """Run the cell; never raises but for the end of the process."""
        try:
            return await self._run()
        except InterruptedByUser as error:
            return await self._fail("KeyboardInterrupt", str(error))
        except DaggerKernelError as error:
            return await self._fail(type(error).__name__, str(error))
        except (KeyboardInterrupt, asyncio.CancelledError) as error:
            # A cancelled task below us is no reason to leave the client without a reply.
            return await self._fail("KeyboardInterrupt", str(error) or "The cell was interrupted.")
        except Exception as error:
            logger.exception("A cell failed inside the kernel")
            text = (
                f"{error} (a fault of dagger_kernel, not of your code; the kernel lives on, "
                "its log has the details)"
            )
            return await self._fail(type(error).__name__, text)

    async def interrupt(self) -> None:
        """Stop the cell. Before it started: it does not start."""
        self._interrupted = True
        if self._running is not None:
            await self._running.interrupt()
        elif self._question is not None:
            self._question.cancel()

    # -- StepListener -------------------------------------------------------------------------

    def event(self, head: dict[str, Any], body: bytes) -> None:
        """Publish one frame of the running cell."""
        kind = head.get("type")
        if kind == "progress":
            if not self._request.silent:
                self._output.progress(str(head.get("text", "")))
            return
        if kind == "comm":
            self._comms.from_cell(head)
        if kind == "error":
            self._error = error_content(head)
            if head.get("handled"):
                return
        if self._request.silent:
            return
        if kind == "stream":
            name = "stderr" if head.get("name") == "stderr" else "stdout"
            self._output.stream(name, str(head.get("text", "")))
        elif message := message_of(head, body, self._number, self.parent["header"]["msg_id"]):
            self._output.publish(*message)

    async def input(self, prompt: str, password: bool) -> str:
        """Ask the client; refuse at once if it takes no questions."""
        if not self._request.allow_stdin:
            raise StdinRefusedError(password=password)
        return await self._ask(prompt, password=password)

    async def _ask_for_kernel(self, prompt: str, *, password: bool) -> str:
        """Ask the client for a magic; an interrupt ends the question."""
        self._question = asyncio.ensure_future(self._ask(prompt, password=password))
        try:
            return await self._question
        except EOFError:
            raise KeyboardInterrupt("Nothing was typed.") from None
        finally:
            self._question = None

    # -- the run ------------------------------------------------------------------------------

    async def _run(self) -> Reply:
        request = self._request
        if request.blank:
            return self._ok()
        call = magics.find(request.code, self._language)
        if isinstance(call, magics.LineCalls):
            ask = self._ask_for_kernel if request.allow_stdin else None
            context = magics.Context(self._holder, self._output, ask, silent=request.silent)
            await magics.run(call, context)
            await self._output.finish()
            return self._ok()
        source, limits = request.code, None
        session = self._session()
        if isinstance(call, magics.CellCall):
            source, limits = call.body, magics.limits_of(call, session)
        return await self._run_step(session, source, limits)

    def _session(self) -> SandboxSession:
        if isinstance(self._opened, BaseException):
            raise self._opened
        assert self._opened is not None
        return self._opened

    async def _run_step(self, session: SandboxSession, source: str, limits: Limits | None) -> Reply:
        request = self._request
        if self._interrupted:
            raise KeyboardInterrupt
        cell = Cell(
            source=source,
            language=self._language,
            # Silent code changes the state like any other, so it is a step, without output and
            # history; only expressions alone can run without one.
            silent=not source.strip(),
            store_history=request.store_history,
            execution_count=self._number,
            user_expressions=request.user_expressions,
            allow_stdin=request.allow_stdin,
            cell_id=request.cell_id,
            limits=limits,
        )
        self._running = session
        self._comms.cell_begins(session.send_comm)
        try:
            result = await session.run(cell, self)
        finally:
            self._running = None
            self._comms.cell_ends(self.parent)
        return await self._finish(session, result)

    async def _finish(self, session: SandboxSession, result: CellResult) -> Reply:
        outcome = result.outcome
        if outcome.status != Status.OK and self._error is None:
            self._publish_error(*_explain(result))
        if not self._request.silent:
            step_id = result.step.id if result.step else ""
            for data, metadata in file_bundles(session.id, step_id, result.files):
                content = {"data": data, "metadata": metadata, "transient": {}}
                self._output.publish("display_data", content)
        await self._output.finish()
        reply = self._ok(
            expressions_of(outcome.user_expressions),
            payload_of(outcome.payloads),
        )
        if outcome.status != Status.OK:
            reply.content |= {"status": "error", "user_expressions": {}, **(self._error or {})}
        reply.metadata["dagger_kernel"] = _metadata(session, result)
        return reply

    async def _fail(self, ename: str, evalue: str) -> Reply:
        self._publish_error(ename, evalue)
        await self._output.finish()
        reply = self._ok()
        reply.content |= {"status": "error", **(self._error or {})}
        return reply

    def _publish_error(self, ename: str, evalue: str) -> None:
        self._error = {"ename": ename, "evalue": evalue, "traceback": [f"{ename}: {evalue}"]}
        if not self._request.silent:
            self._output.publish("error", dict(self._error))

    def _ok(
        self,
        user_expressions: dict[str, Any] | None = None,
        payload: list[dict[str, Any]] | None = None,
    ) -> Reply:
        return Reply(
            {
                "status": "ok",
                "user_expressions": user_expressions or {},
                "payload": payload or [],
            }
        )


def _explain(result: CellResult) -> tuple[str, str]:
    """Return name and text of the error for a cell that ended without one of its own."""
    outcome = result.outcome
    if outcome.status == Status.INTERRUPTED:
        return "KeyboardInterrupt", "The cell was interrupted."
    if outcome.status == Status.LIMIT:
        return "LimitExceeded", f"The cell passed its limit: {outcome.reason or 'unknown'}."
    if outcome.exit_code < 0:
        return "CellDied", f"The cell's process was ended by signal {-outcome.exit_code}."
    return "CellDied", f"The cell's process ended with exit code {outcome.exit_code}."


def _metadata(session: SandboxSession, result: CellResult) -> dict[str, Any]:
    """Return what agents read instead of parsing outputs."""
    step, outcome = result.step, result.outcome
    return {
        "sandbox": session.id,
        "step": step.id if step else None,
        "seq": step.seq if step else None,
        "key": step.key if step else None,
        "status": str(outcome.status),
        "reason": outcome.reason,
        "exit_code": outcome.exit_code,
        "files": [file_record(item) for item in result.files],
        "usage": outcome.usage,
        "state": outcome.state,
        "drift": list(result.drift),
        "truncated": outcome.truncated,
        "killed": list(outcome.killed),
    }

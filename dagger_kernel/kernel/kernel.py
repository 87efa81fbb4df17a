"""The requests of this kernel."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from traitlets import CaselessStrEnum

from .._version import __version__
from ..sandbox import SandboxSession
from ..steps import Language
from .answers import Answers
from .comms import CommRelay
from .execution import CellExecution, Reply
from .history import history
from .holder import SessionHolder
from .language import LanguageFace, language_face
from .output import CellOutput
from .pacing import Pace
from .protocol import Message, ProtocolKernel
from .request import BadRequestError, ExecuteRequest
from .stdin import StdinChannel
from .usage import usage

SHUTDOWN_SECONDS = 2.0
"""jupyter_client sends SIGTERM half its five seconds after the request."""


class DaggerKernel(ProtocolKernel):
    """A kernel whose cells are logged steps in fresh containers."""

    implementation_version = __version__

    language = CaselessStrEnum(
        [str(item) for item in Language],
        str(Language.PYTHON),
        help="The language of the cells: python or bash.",
    ).tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._language = Language(self.language)
        self._face: LanguageFace = language_face(self._language)
        self._counted = ""  # the sandbox that the execution count belongs to
        self._pace = Pace()
        self._comms = CommRelay(self.publish)
        self._current: Message | None = None  # the cell that runs, or waits for the log
        self._execution: CellExecution | None = None
        self._opening: asyncio.Future[SandboxSession] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stdin: StdinChannel | None = None
        name = "dagger-bash" if self._language is Language.BASH else "dagger"
        self._holder = SessionHolder(name)
        self._answers = Answers(self._holder, self._language, lambda: self._execution is not None)

    @property
    def language_info(self) -> dict[str, Any]:
        """For highlighting and converters."""
        return self._face.info

    @property
    def banner(self) -> str:
        """What ``jupyter console`` prints first."""
        return self._face.banner

    @property
    def help_links(self) -> list[dict[str, str]]:
        """Entries of the Help menu."""
        return [{"text": text, "url": url} for text, url in self._face.links]

    def start(self) -> None:
        """Begin to answer; prepare the sandbox behind the first replies."""
        super().start()
        if self.stdin_socket is not None:
            self._stdin = StdinChannel(self.stdin_socket, self.session)
        self.io_loop.call_later(0.05, self._background, self._holder.warm())

    # -- execute ------------------------------------------------------------------------------

    async def execute_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """Run a cell; exactly one reply, whatever happens."""
        if stream is self.control_stream:
            # It would hold up the interrupts behind it.
            refusal = BadRequestError("Send execute_request on the shell channel.")
            self.reply(stream, ident, parent, self.error_content(refusal))
            return
        try:
            request = ExecuteRequest.parse(parent)
        except BadRequestError as error:
            content = {"execution_count": self.execution_count, **self.error_content(error)}
            self.reply(stream, ident, parent, content)
            return
        reply = await self._execute(request, ident, parent)
        reply.content["execution_count"] = self.execution_count
        failed = reply.content["status"] == "error"
        if failed and request.stop_on_error and not request.silent:
            await self.abort_waiting()
        self.reply(stream, ident, parent, reply.content, reply.metadata)

    async def _execute(self, request: ExecuteRequest, ident: Any, parent: Message) -> Reply:
        self._current = parent
        opened = await self._open(request)
        number = self._next_number()
        if not request.silent:
            content = {"code": request.code, "execution_count": number}
            self.publish("execute_input", content, parent)
        if request.store_history and request.code.strip():
            self._count = number
        self._execution = CellExecution(
            request,
            number,
            opened,
            language=self._language,
            holder=self._holder,
            output=CellOutput(partial(self._publish_output, parent), self._pace),
            comms=self._comms,
            ask=partial(self._ask_client, ident, parent),
            parent=parent,
        )
        try:
            return await self._execution.run()
        finally:
            self._execution = self._current = None

    async def _open(self, request: ExecuteRequest) -> SandboxSession | BaseException | None:
        """Return the session, or why there is none: the cell has to say it."""
        if request.blank:
            return self._holder.current
        self._opening = asyncio.ensure_future(self._holder.get())
        try:
            return await self._opening
        except asyncio.CancelledError:
            return KeyboardInterrupt("Interrupted while the log was being opened.")
        except Exception as error:
            return error
        finally:
            self._opening = None

    def _next_number(self) -> int:
        """Return the cell's number; a continued sandbox goes on counting, a new one begins."""
        session = self._holder.current
        if session is not None and session.id != self._counted:
            self._counted, self._count = session.id, session.next_execution_count - 1
        return self._count + 1

    def _publish_output(
        self,
        parent: Message,
        msg_type: str,
        content: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        buffers: list[bytes] | None = None,
    ) -> None:
        self.publish(msg_type, content, parent, buffers, metadata)

    async def _ask_client(self, ident: Any, parent: Message, prompt: str, *, password: bool) -> str:
        assert self._stdin is not None
        return await self._stdin.ask(prompt, password=password, ident=ident, parent=parent)

    # -- questions ----------------------------------------------------------------------------

    async def complete_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """Complete code on the tip's state."""
        await self.answer(stream, ident, parent, self._answers.complete)

    async def inspect_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """Describe the object at the cursor."""
        await self.answer(stream, ident, parent, self._answers.inspect)

    async def is_complete_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """Tell whether code is a complete statement."""
        await self.answer(stream, ident, parent, self._answers.is_complete)

    async def history_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """Return earlier inputs from the log."""
        await self.answer(stream, ident, parent, partial(history, self._holder))

    async def comm_info_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """List the comms of the running cell."""

        async def info(content: dict[str, Any]) -> dict[str, Any]:
            return {"status": "ok", "comms": self._comms.info(content.get("target_name"))}

        await self.answer(stream, ident, parent, info)

    async def usage_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """Tell what the sandbox uses; on the control channel, so also while a cell runs."""

        async def answer(_content: dict[str, Any]) -> dict[str, Any]:
            return usage(self._holder.current)

        await self.answer(stream, ident, parent, answer)

    # -- comms --------------------------------------------------------------------------------

    async def comm_open(self, _stream: Any, _ident: Any, message: Message) -> None:
        """Relay a client's comm to the running cell, or close it."""
        await self._comms.from_client("comm_open", message)

    async def comm_msg(self, _stream: Any, _ident: Any, message: Message) -> None:
        """Relay a widget's event."""
        await self._comms.from_client("comm_msg", message)

    async def comm_close(self, _stream: Any, _ident: Any, message: Message) -> None:
        """Relay the end of a comm."""
        await self._comms.from_client("comm_close", message)

    # -- control ------------------------------------------------------------------------------

    def interrupt(self, request: Message | None = None) -> None:
        """Interrupt the running cell, if there is one. On the main loop.

        The channels race: an interrupt a client sent before the cell was meant for an earlier one.
        """
        if self._current is None or (request and _sent_before(request, self._current)):
            return
        if self._opening is not None:
            self._opening.cancel()
        if self._execution is not None:
            self._background(self._execution.interrupt())

    async def interrupt_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """Interrupt the running cell; on the control thread, answered at once."""
        self.io_loop.add_callback(self.interrupt, parent)
        self.reply(stream, ident, parent, {"status": "ok"})

    async def shutdown_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """End the kernel; the log stays."""
        content = parent["content"] if isinstance(parent["content"], dict) else {}
        parent["content"] = {"restart": False, **content}
        await super().shutdown_request(stream, ident, parent)

    @property
    def shutting_down(self) -> bool:
        """Whether a client asked for the end."""
        return self._shutdown_message is not None

    async def do_shutdown(self, restart: bool) -> dict[str, Any]:
        """Close the sandbox's session, within the time jupyter_client gives."""
        try:
            await self.on_main_loop(self.leave(restart=restart))
        except Exception:
            self.log.warning("The sandbox was not closed in order", exc_info=True)
        return {"status": "ok", "restart": restart}

    async def leave(self, *, restart: bool) -> None:
        """Close the session, with a time-out. On the main loop."""
        async with asyncio.timeout(SHUTDOWN_SECONDS):
            await self._holder.end(restart=restart)

    def _background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _sent_before(first: Message, second: Message) -> bool:
    """Whether one client sent the first message before the second, by its own clock."""
    one, two = first["header"], second["header"]
    try:
        return bool(one["session"] == two["session"] and one["date"] < two["date"])
    except (KeyError, TypeError):
        return False

"""ipykernel's base class with its traps closed. Nothing here knows of sandboxes.

What the base class gets wrong for a kernel whose cells run elsewhere:

- an interrupt sends SIGINT to the kernel's own process, which ends it;
- an exception in a handler leaves the client without a reply, for ever;
- ``kernel_info`` claims a debugger and subshells;
- requests with unknown or missing fields get no reply;
- queued cells are not reliably aborted when messages are handled on the main thread.

ipykernel is untyped for us: this module is the one place that knows its private names.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

from ipykernel.kernelbase import Kernel

from ..errors import DaggerKernelError
from .text import clean

PROTOCOL_VERSION = "5.5"

Message = dict[str, Any]
Answer = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class ProtocolKernel(Kernel):
    """A kernel whose every request ends in exactly one reply.

    Handlers of the shell channel run on the main thread's loop; those of the control channel on
    the control thread's, so that they are answered while a cell runs. What they need of the
    kernel is computed on the main loop (`on_main_loop`).
    """

    implementation = "dagger_kernel"

    def __init__(self, **kwargs: Any) -> None:
        self._count = 0
        super().__init__(**kwargs)
        self._main_thread = threading.current_thread()
        self._main_loop: asyncio.AbstractEventLoop | None = None
        for msg_type in ("comm_open", "comm_msg", "comm_close"):
            self.shell_handlers[msg_type] = getattr(self, msg_type)

    # The counter is ours: the base class advances its own although store_history is false.
    @property
    def execution_count(self) -> int:
        """The number of the last cell that was stored in the history."""
        return self._count

    @execution_count.setter
    def execution_count(self, value: int) -> None:
        """Ignore the base class."""

    def start(self) -> None:
        """Register the handlers. Called on the main thread, with its loop current."""
        self._main_loop = asyncio.get_event_loop_policy().get_event_loop()
        super().start()

    def pre_handler_hook(self) -> None:
        """Leave SIGINT alone: it is handled by the loop."""

    def post_handler_hook(self) -> None:
        """Leave SIGINT alone."""

    @property
    def kernel_info(self) -> dict[str, Any]:
        """What this kernel is; claims nothing it cannot do."""
        return {
            "protocol_version": PROTOCOL_VERSION,
            "implementation": self.implementation,
            "implementation_version": self.implementation_version,
            "language_info": self.language_info,
            "banner": self.banner,
            "help_links": self.help_links,
            "supported_features": [],
        }

    # -- sending ------------------------------------------------------------------------------

    def publish(
        self,
        msg_type: str,
        content: dict[str, Any],
        parent: Message,
        buffers: list[bytes] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Send an IOPub message with an explicit parent; from any thread."""
        self.session.send(
            self.iopub_socket,
            msg_type,
            clean(content),
            metadata=clean(metadata),
            parent=parent,
            ident=self._topic(msg_type),
            buffers=buffers,
        )

    def reply(
        self,
        stream: Any,
        ident: Any,
        parent: Message,
        content: dict[str, Any],
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Send the reply to a request."""
        msg_type = parent["header"]["msg_type"].removesuffix("_request") + "_reply"
        self.session.send(
            stream, msg_type, clean(content), parent, ident=ident, metadata=clean(metadata)
        )

    async def answer(self, stream: Any, ident: Any, parent: Message, produce: Answer) -> None:
        """Reply with what ``produce`` makes of the request's content, or with its error."""
        content = parent["content"] if isinstance(parent["content"], dict) else {}
        try:
            reply = await self.on_main_loop(produce(content))
        except Exception as error:
            reply = self.error_content(error)
        self.reply(stream, ident, parent, reply)

    def error_content(self, error: BaseException) -> dict[str, Any]:
        """Return the content of an error reply."""
        if isinstance(error, DaggerKernelError):
            return {"status": "error", **error.as_error_content()}
        if isinstance(error, Exception):
            self.log.error("A request failed inside the kernel", exc_info=error)
        name, text = type(error).__name__, str(error)
        return {"status": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}

    async def on_main_loop(self, work: Awaitable[Any]) -> Any:
        """Await on the main loop, from any thread's loop."""
        if threading.current_thread() is self._main_thread or self._main_loop is None:
            return await work
        coroutine = cast("Coroutine[Any, Any, Any]", work)
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(coroutine, self._main_loop)
        )

    # -- aborting -----------------------------------------------------------------------------

    async def abort_waiting(self) -> None:
        """Abort the cells that wait behind the current one; later ones run.

        Called on the main loop while the current cell's handler holds the shell's lock. What
        has arrived is pulled into the lock's queue first; a task queued behind it ends the
        aborting. So the decision is made before the reply is sent, and a client that reacts to
        the reply is never aborted.
        """
        if self.shell_stream is not None:
            self.shell_stream.flush()
        for _ in range(4):  # on_recv starts a task, which starts a task, which waits for the lock
            await asyncio.sleep(0)
        self._aborting = True
        self._abort_end = asyncio.create_task(self._end_abort())
        await asyncio.sleep(0)

    async def _end_abort(self) -> None:
        async with self._main_asyncio_lock:
            self._aborting = False

    def _send_abort_reply(self, stream: Any, msg: Message, idents: Any) -> None:
        content = {"status": "aborted", "execution_count": self.execution_count}
        self.reply(stream, idents, msg, content, {"status": "aborted"})

    # -- what is not offered ------------------------------------------------------------------

    async def shell_main(self, subshell_id: str | None, msg: Any) -> None:
        """Take a shell message; one for a subshell is refused, for there are none."""
        try:
            idents, frames = self.session.feed_identities(msg, copy=False)
            # Peeking: unpacking the content would count the signature as used.
            parent = self.session.deserialize(frames, content=False, copy=False)
        except Exception:
            parent = {"header": {}}  # the base class reports it
        if parent["header"].get("subshell_id") is None:
            await super().shell_main(subshell_id, msg)
            return
        from ipykernel.subshell_manager import UnknownSubshellError

        self._send_unknown_subshell_reply(
            idents, parent, UnknownSubshellError(parent["header"]["subshell_id"])
        )

    async def _refuse(self, stream: Any, ident: Any, parent: Message, what: str) -> None:
        text = f"This kernel does not support {what}."
        error = {"ename": "NotImplementedError", "evalue": text, "traceback": [text]}
        self.reply(stream, ident, parent, {"status": "error", **error})

    async def create_subshell_request(self, socket: Any, ident: Any, parent: Message) -> None:
        """Refuse: a log has one order."""
        await self._refuse(socket, ident, parent, "subshells")

    async def delete_subshell_request(self, socket: Any, ident: Any, parent: Message) -> None:
        """Refuse."""
        await self._refuse(socket, ident, parent, "subshells")

    async def list_subshell_request(self, socket: Any, ident: Any, parent: Message) -> None:
        """Refuse."""
        await self._refuse(socket, ident, parent, "subshells")

    async def debug_request(self, stream: Any, ident: Any, parent: Message) -> None:
        """Refuse in the words of the debug adapter protocol."""
        content = parent["content"] if isinstance(parent["content"], dict) else {}
        reply = {
            "type": "response",
            "request_seq": content.get("seq", 0),
            "success": False,
            "command": content.get("command", ""),
            "message": "This kernel has no debugger; use breakpoint() in a cell.",
        }
        self.reply(stream, ident, parent, reply)

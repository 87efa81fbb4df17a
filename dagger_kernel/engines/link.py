"""The kernel's end of the link: frames in and out of a runner, over a stream socket.

Shared by both engines: `LinkRoom` is a `Room` whose step, questions and interrupts travel as the
frames of `dagger_kernel.runner.protocol`. An engine adds how a room begins and how it becomes a layer.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from typing import Any

from ..errors import LinkError, RoomLostError
from ..runner import protocol
from .base import Outcome, Room, StepHandler

ASK_SECONDS = 10.0
EVENTS = frozenset(
    ("stream", "display", "result", "clear", "error", "comm", "file", "overflow", "progress")
)
STATUSES = frozenset(("ok", "error", "interrupted", "limit"))


class Link:
    """Frames over one connected stream socket. Methods belong to the event loop that made it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.frame_size = 0
        """Bytes of the frame received last."""

    @classmethod
    async def over(cls, connected: socket.socket) -> Link:
        """Return a link over an already connected socket, which it then owns."""
        reader, writer = await asyncio.open_unix_connection(sock=connected, limit=1 << 20)
        return cls(reader, writer)

    async def receive(self) -> tuple[dict[str, Any], bytes] | None:
        """Return the next frame, None at the end.

        Raises
        ------
        LinkError
            The other side does not follow the protocol.
        """
        try:
            header = await self._reader.readexactly(protocol.HEADER.size)
            head_size, body_size = protocol.decode_header(header)
            self.frame_size = head_size + body_size
            head = protocol.decode_head(await self._reader.readexactly(head_size))
            body = await self._reader.readexactly(body_size) if body_size else b""
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        except protocol.ProtocolError as error:
            raise LinkError(f"The runner sent something else than a frame: {error}.") from None
        return head, body

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Send a frame; silently nothing when the other side is gone (receiving tells)."""
        if not self._writer.is_closing():
            self._writer.write(protocol.encode(head, body))

    async def drain(self) -> None:
        """Wait until what was sent is mostly on its way; nothing when the other side is gone."""
        try:
            await self._writer.drain()
        except ConnectionError:
            pass  # receiving tells

    def close(self) -> None:
        """Close both directions."""
        if not self._writer.is_closing():
            self._writer.close()


class LinkRoom(Room):
    """A room behind a link. Subclasses say how it ends: `commit`, `discard`, `close`."""

    engine_name = ""

    def __init__(self, link: Link, nonce: str, parent_key: str) -> None:
        self._link = link
        self.nonce = nonce
        self.parent_key = parent_key
        self._state = "waiting"  # -> running -> done; or -> closed
        self._handler: StepHandler | None = None
        self._done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ids = itertools.count(1)
        self._inputs: set[asyncio.Task[None]] = set()
        self._pump = asyncio.create_task(self._receive_frames())

    @property
    def waiting(self) -> bool:
        """Whether it got no step and was not closed."""
        return self._state == "waiting"

    @property
    def alive(self) -> bool:
        """Whether a step can still be given to it."""
        return self.waiting

    async def run(self, request: dict[str, Any], handler: StepHandler) -> Outcome:
        """Deliver the step and return its outcome; see `Room.run`."""
        if self._state != "waiting":
            raise RoomLostError("The room ended before its step came.", engine=self.engine_name)
        self._state, self._handler = "running", handler
        self._link.send({**request, "type": "step", "nonce": self.nonce})
        try:
            return await asyncio.shield(self._done)
        finally:
            self._state = "done"
            for task in self._inputs:
                task.cancel()

    async def ask(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        """Answer a question about the waiting state; see `Room.ask`."""
        if self._state != "waiting":
            raise RoomLostError("The room is not waiting.", engine=self.engine_name)
        number = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._link.send({"type": "ask", "id": number, "kind": kind, "content": content})
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await answer
        finally:
            self._answers.pop(number, None)

    async def interrupt(self) -> None:
        """Interrupt the running step; see `Room.interrupt`."""
        if self._state == "running":
            self._link.send({"type": "interrupt"})

    async def send_comm(self, message: dict[str, Any], buffers: bytes = b"") -> None:
        """Hand a comm message to the running step."""
        if self._state == "running":
            self._link.send({**message, "type": "comm"}, buffers)

    async def close(self) -> None:
        """End a room that got no step."""
        if self._state == "waiting":
            self._link.send({"type": "close"})
        self._state = "closed"
        self._link.close()
        self._pump.cancel()

    async def _receive_frames(self) -> None:
        try:
            while frame := await self._link.receive():
                self._take(*frame)
                if self._done.done():
                    return
            self._fail(
                RoomLostError(
                    "The sandbox ended without a result.",
                    engine=self.engine_name,
                    started=self._state == "running",
                )
            )
        except LinkError as error:
            self._fail(error)
        except Exception as error:  # a handler's fault must end the step, not hang it
            self._fail(LinkError(f"An event of the runner could not be handled: {error!r}."))

    def _take(self, head: dict[str, Any], body: bytes) -> None:
        kind = head["type"]
        if kind == "answer":
            waiting = self._answers.get(head.get("id", 0))
            content = head.get("content")
            if waiting and not waiting.done() and isinstance(content, dict):
                waiting.set_result(content)
        elif kind in EVENTS and self._handler is not None:
            self._handler.event(head, body)
        elif kind == "input_request" and self._handler is not None:
            task = asyncio.create_task(self._answer_input(self._handler, head))
            self._inputs.add(task)
            task.add_done_callback(self._inputs.discard)
        elif kind == "done":
            if self._state == "running" and not self._done.done():
                self._done.set_result(outcome_from(head))
        elif kind != "hello":
            raise LinkError(f"The runner sent an unexpected frame: {kind[:40]!r}.")

    async def _answer_input(self, handler: StepHandler, head: dict[str, Any]) -> None:
        try:
            value = await handler.input(str(head.get("prompt", "")), bool(head.get("password")))
        except Exception as error:
            self._link.send({"type": "input", "error": str(error) or type(error).__name__})
        else:
            self._link.send({"type": "input", "value": value})

    def _fail(self, error: Exception) -> None:
        if self._state == "waiting":
            self._state = "closed"
            self._link.close()  # nobody may ever close a room that was lost before its step
        if not self._done.done():
            self._done.set_exception(error)
            self._done.exception()  # mark as seen: run() may never be called
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(error)


def outcome_from(head: dict[str, Any]) -> Outcome:
    """Return the checked outcome of a ``done`` frame.

    Raises
    ------
    LinkError
        A field has the wrong type.
    """
    shapes: dict[str, type] = {
        "status": str,
        "reason": str,
        "exit_code": int,
        "usage": dict,
        "state": dict,
        "user_expressions": dict,
        "payloads": list,
        "truncated": bool,
        "killed": list,
        "answers": list,
    }
    values = {name: head[name] for name in shapes if head.get(name) is not None}
    for name, value in values.items():
        if not isinstance(value, shapes[name]):
            raise LinkError(f"The runner's outcome has a wrong {name}.")
    if values.get("status") not in STATUSES:
        raise LinkError("The runner's outcome has no known status.")
    return Outcome(**values)

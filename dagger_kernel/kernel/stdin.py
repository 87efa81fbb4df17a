"""Questions of a running cell to the client that asked for the cell."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from .text import clean

logger = logging.getLogger(__name__)

END_OF_FILE = "\x04"
"""What a client sends for Ctrl-D."""


class StdinRefusedError(Exception):
    """The client does not answer questions; the text is Jupyter's usual one."""

    def __init__(self, *, password: bool) -> None:
        name = "getpass" if password else "raw_input"
        super().__init__(f"{name} was called, but this frontend does not support input requests.")


class StdinChannel:
    """The stdin socket, without blocking the main loop.

    Parameters
    ----------
    socket
        The kernel's stdin socket (a ROUTER). After this only the main loop may touch it.
    session
        jupyter_client's, for signatures.
    """

    def __init__(self, socket: Any, session: Any) -> None:
        from zmq.eventloop.zmqstream import ZMQStream

        self._session = session
        self._stream = ZMQStream(socket)
        self._stream.on_recv(self._receive, copy=False)
        self._asker: bytes = b""
        self._answer: asyncio.Future[str] | None = None

    async def ask(self, prompt: str, *, password: bool, ident: list[bytes], parent: Any) -> str:
        """Ask the client ``ident`` and return what was typed.

        Raises
        ------
        EOFError
            The user ended the input.
        asyncio.CancelledError
            The cell ended without waiting for the answer.
        """
        self._answer = answer = asyncio.get_running_loop().create_future()
        self._asker = bytes(ident[0]) if ident else b""
        content = clean({"prompt": prompt, "password": password})
        self._session.send(self._stream, "input_request", content, parent, ident=ident)
        try:
            value = await answer
        finally:
            self._answer = None
        if value == END_OF_FILE:
            raise EOFError
        return value

    def _receive(self, frames: list[Any]) -> None:
        """Take an ``input_reply``; stale ones and other clients' are dropped."""
        idents, rest = self._session.feed_identities(frames, copy=False)
        try:
            message = self._session.deserialize(rest, content=True, copy=False)
        except Exception:
            logger.warning("An input reply was not valid", exc_info=True)
            return
        asker = bytes(getattr(idents[0], "bytes", idents[0])) if idents else b""
        if self._answer is None or self._answer.done() or asker != self._asker:
            logger.info("An input reply nobody waits for was dropped")
            return
        content = message["content"] if isinstance(message["content"], dict) else {}
        self._answer.set_result(str(content.get("value", "")))

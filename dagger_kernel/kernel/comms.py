"""Relays the comm messages of widgets between the client and the running cell.

A comm lives as long as its cell: the next cell is another container. An event for a comm whose
cell has ended is answered with a close and a one-line reason.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

ENDED = (
    "This widget's cell has ended: its display stays, its events do not. "
    "Run the cell again to use it.\n"
)
LENGTH = struct.Struct("!I")

ToCell = Callable[[dict[str, Any], list[bytes]], Awaitable[None]]


class Publish(Protocol):
    """Sends an IOPub message whose parent is a given message."""

    def __call__(
        self,
        msg_type: str,
        content: dict[str, Any],
        parent: Any,
        buffers: list[bytes] | None = None,
    ) -> None:
        """Send it now."""


class CommRelay:
    """The comms of one kernel. Used on the main loop only."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._live: dict[str, str] = {}
        self._by_client: set[str] = set()
        self._closed: set[str] = set()
        self._to_cell: ToCell | None = None

    def cell_begins(self, to_cell: ToCell) -> None:
        """A cell runs now; ``to_cell`` delivers messages to it."""
        self._to_cell = to_cell

    def cell_ends(self, parent: Any) -> None:
        """The cell is over: its comms too. Those a client opened have no display: close them."""
        self._to_cell = None
        for comm_id in self._by_client & self._live.keys():
            self._close(comm_id, parent)
        self._live.clear()
        self._by_client.clear()

    def from_cell(self, head: dict[str, Any]) -> None:
        """Note what the running cell opens and closes; the message itself is its output."""
        content = comm_content(head)
        comm_id = content["comm_id"]
        if head.get("msg_type") == "comm_open":
            self._live[comm_id] = str(content.get("target_name", ""))
        elif head.get("msg_type") == "comm_close":
            self._live.pop(comm_id, None)
        else:  # perhaps of an earlier cell's widget, which this cell goes on with
            self._live.setdefault(comm_id, "")

    def info(self, target_name: str | None) -> dict[str, dict[str, str]]:
        """Return the open comms: those of the running cell."""
        return {
            comm_id: {"target_name": target}
            for comm_id, target in self._live.items()
            if not target_name or target == target_name
        }

    async def from_client(self, msg_type: str, message: dict[str, Any]) -> None:
        """Deliver a client's ``comm_open``, ``comm_msg`` or ``comm_close``, or close the comm."""
        content = message["content"] if isinstance(message.get("content"), dict) else {}
        comm_id = str(content.get("comm_id", ""))
        if self._to_cell is not None and (msg_type == "comm_open" or comm_id in self._live):
            if msg_type == "comm_open":
                # The cell may have registered the target; if not, its comm manager closes it.
                self._live[comm_id] = str(content.get("target_name", ""))
                self._by_client.add(comm_id)
            elif msg_type == "comm_close":
                self._live.pop(comm_id, None)
            buffers = [bytes(part) for part in message.get("buffers") or ()]
            metadata = message.get("metadata") or {}
            await self._to_cell(
                {"msg_type": msg_type, "content": content, "metadata": metadata}, buffers
            )
            return
        if msg_type == "comm_open":
            self._closed.add(comm_id)
            self._close(comm_id, message)
        elif msg_type == "comm_msg" and comm_id not in self._closed:
            # A dragged slider sends many events before the close arrives, JupyterLab two to a target that
            # is not there; closed again, a client complains of a comm it does not know.
            self._closed.add(comm_id)
            self._close(comm_id, message)
            self._publish("stream", {"name": "stderr", "text": ENDED}, message)

    def _close(self, comm_id: str, parent: Any) -> None:
        self._publish("comm_close", {"comm_id": comm_id, "data": {}}, parent)


def split_buffers(count: int, body: bytes) -> list[bytes]:
    """Return the length-prefixed buffers of a ``comm`` frame; a broken body gives fewer."""
    buffers: list[bytes] = []
    offset = 0
    while len(buffers) < count and offset + LENGTH.size <= len(body):
        (size,) = LENGTH.unpack_from(body, offset)
        offset += LENGTH.size
        buffers.append(body[offset : offset + size])
        offset += size
    return buffers


def comm_content(head: dict[str, Any]) -> dict[str, Any]:
    """Return the content to publish of a ``comm`` frame."""
    given = head.get("content")
    content = dict(given) if isinstance(given, dict) else {}
    content["comm_id"] = str(content.get("comm_id", ""))
    if not isinstance(content.get("data"), dict):
        content["data"] = {}
    if head.get("msg_type") == "comm_open":
        content["target_name"] = str(content.get("target_name", ""))
    return content

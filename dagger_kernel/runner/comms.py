"""Comms: widgets and other two-way displays, while the cell runs."""

from __future__ import annotations

import struct
from typing import Any

import comm
from comm.base_comm import BaseComm, CommManager

from .display import Outlet
from .mime import clean
from .protocol import THIS_CELL

LENGTH = struct.Struct("!I")


def pack_buffers(buffers: Any) -> bytes:
    """Return buffers one after the other, each behind its length."""
    parts = []
    for buffer in buffers or ():
        data = memoryview(buffer).cast("B")
        parts += [LENGTH.pack(len(data)), bytes(data)]
    return b"".join(parts)


def unpack_buffers(body: bytes, count: int) -> list[bytes]:
    """Return the buffers of a frame's body."""
    buffers = []
    offset = 0
    for _ in range(count):
        (length,) = LENGTH.unpack_from(body, offset)
        offset += LENGTH.size
        buffers.append(body[offset : offset + length])
        offset += length
    return buffers


class RunnerComm(BaseComm):
    """A comm whose messages travel as frames. A cell goes on with the comms of earlier ones that it touches."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        comm.get_comm_manager().register_comm(self)

    def publish_msg(
        self,
        msg_type: str,
        data: Any = None,
        metadata: Any = None,
        buffers: Any = None,
        **keys: Any,
    ) -> None:
        """Send a comm message to the client."""
        content = {"data": clean(data or {}), "comm_id": self.comm_id, **keys}
        Outlet.send(
            {
                "type": "comm",
                "msg_type": msg_type,
                "content": content,
                "metadata": clean(metadata or {}),
                "buffers": len(buffers or ()),
            },
            pack_buffers(buffers),
        )


class KernelFace:
    """What libraries look for as ``get_ipython().kernel``.

    Widgets ask it for the request that runs: an `Output` widget names it to the client, which then takes
    that request's output as the widget's.
    """

    @property
    def comm_manager(self) -> CommManager:
        """The manager of this cell's comms."""
        return comm.get_comm_manager()

    def get_parent(self, _channel: Any = None) -> dict[str, Any]:
        """Return the running cell's request, as far as a cell may know it."""
        header = {"msg_id": THIS_CELL, "msg_type": "execute_request"}
        return {"header": header, "parent_header": {}, "metadata": {}, "content": {}}


def install(shell: Any) -> None:
    """Let ``comm.create_comm`` make our comms, and show the shell's users a kernel."""
    shell.kernel = KernelFace()
    manager = CommManager()
    comm.create_comm = RunnerComm
    comm.get_comm_manager = lambda: manager


def dispatch(head: dict[str, Any], body: bytes) -> None:
    """Hand an incoming comm frame to the comm it is for."""
    manager = comm.get_comm_manager()
    handler = getattr(manager, str(head.get("msg_type")), None)
    if head.get("msg_type") not in ("comm_open", "comm_msg", "comm_close") or handler is None:
        return
    message = {
        "header": {"msg_type": head["msg_type"]},
        "content": head.get("content") or {},
        "metadata": head.get("metadata") or {},
        "buffers": unpack_buffers(body, int(head.get("buffers") or 0)),
    }
    try:
        handler(None, "", message)
    except Exception:
        import traceback

        traceback.print_exc()

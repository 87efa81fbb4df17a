"""The link to the kernel, blocking."""

from __future__ import annotations

import io
import socket
from typing import Any, BinaryIO

from dagger_kernel_runner import protocol  # type: ignore[import-not-found] # shipped beside us
from dagger_kernel_runner.dial import dial  # type: ignore[import-not-found]


class Wire:
    """The link, as its other end in the runner sees it, but blocking."""

    def __init__(self, path: str, nonce: str) -> None:
        self.sock: socket.socket = dial(path)
        self.stream: BinaryIO = self.sock.makefile("rb")
        self.send({"type": "hello", "nonce": nonce, "protocol": protocol.PROTOCOL})

    def send(self, head: dict[str, Any]) -> None:
        """Send a frame."""
        self.sock.sendall(protocol.encode(head))

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """Return the next frame; the end of the link is an error."""
        head_size, body_size = protocol.decode_header(self._exactly(8))
        head = protocol.decode_head(self._exactly(head_size))
        return head, self._exactly(body_size)

    def _exactly(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) != size:
            raise ConnectionError
        return data


def gather(wire: Wire) -> BinaryIO:
    """Return the archive that arrives."""
    archive = io.BytesIO()
    while True:
        head, body = wire.receive()
        if head["type"] != "data":
            archive.seek(0)
            return archive
        archive.write(body)

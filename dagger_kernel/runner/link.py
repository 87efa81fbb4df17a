"""The supervisor's end of the link: never blocks, whatever the kernel does."""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Iterator
from typing import Any

from .packets import FrameReader
from .protocol import encode

FULL = 8 << 20
"""Unsent bytes from which on the cell has to wait."""


class Link:
    """Frames in and out of the connected socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)
        self._reader = FrameReader()
        self._unsent: deque[memoryview] = deque()
        self._unsent_size = 0
        self.closed = False

    def fileno(self) -> int:
        """Return the descriptor, for selectors."""
        return self.sock.fileno()

    @property
    def unsent(self) -> int:
        """Bytes that wait for the kernel."""
        return self._unsent_size

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Queue a frame and send what can be sent."""
        data = encode(head, body)
        self._unsent.append(memoryview(data))
        self._unsent_size += len(data)
        self.push()

    def push(self) -> None:
        """Send what can be sent now."""
        while self._unsent and not self.closed:
            view = self._unsent[0]
            try:
                sent = self.sock.send(view)
            except BlockingIOError:
                return
            except OSError:
                self.closed = True
                return
            self._unsent_size -= sent
            if sent == len(view):
                self._unsent.popleft()
            else:
                self._unsent[0] = view[sent:]

    def receive(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yield the frames that have arrived; `closed` is set at the end of the stream.

        Raises
        ------
        ProtocolError
            The kernel's side breaks the protocol.
        """
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return
        yield from self._reader.feed(data)

    def flush(self, seconds: float) -> bool:
        """Send everything; return whether it went out in time."""
        while self._unsent and not self.closed:
            _, ready, _ = select.select([], [self.sock], [], seconds)
            if not ready:
                return False
            self.push()
        return not self._unsent

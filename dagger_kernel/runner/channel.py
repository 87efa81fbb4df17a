"""The cell process's side of the talk with the supervisor.

Text goes through the pipes of descriptors 1 and 2, everything else through packets. A packet that must
keep its place among text is acknowledged: the supervisor empties the pipes first, then forwards it, then
lets the cell go on.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from .packets import receive_packet, send_packet

ACK = struct.Struct("Q")


class Channel:
    """Send frames to the supervisor, receive frames from it.

    Attributes
    ----------
    pid
        The cell process. Children that its code forks may send, but never wait or receive.
    on_comm
        Takes comm frames that arrive while something else is awaited.
    """

    def __init__(self, sock: socket.socket, acks: int) -> None:
        self.sock = sock
        self.acks = acks
        self.pid = os.getpid()
        self.on_comm: Callable[[dict[str, Any], bytes], None] | None = None
        self.pending: deque[tuple[dict[str, Any], bytes]] = deque()
        self._lock = threading.RLock()
        self._sequence = 0

    @property
    def own(self) -> bool:
        """Whether this is the cell process itself, not a child its code forked."""
        return os.getpid() == self.pid

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Send a frame without waiting."""
        send_packet(self.sock, head, body)

    def send_in_order(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Send a frame that keeps its place among what this thread prints."""
        if not self.own:
            self.send(head, body)
            return
        with self._lock:
            self._sequence += 1
            sequence = self._sequence
            send_packet(self.sock, {**head, "ack": sequence}, body)
            self._await_ack(sequence)

    def _await_ack(self, sequence: int) -> None:
        """Wait until the supervisor has forwarded a frame.

        An interrupt may leave acknowledgements unread; they are smaller and are skipped.
        """
        while True:
            data = os.read(self.acks, ACK.size)
            if len(data) < ACK.size or ACK.unpack(data)[0] >= sequence:
                return

    def poll(self, timeout: float | None) -> tuple[dict[str, Any], bytes] | None:
        """Return the next frame from the supervisor, None if none came in time.

        Raises
        ------
        ConnectionError
            The supervisor is gone.
        """
        if self.pending:
            return self.pending.popleft()
        ready, _, _ = select.select([self.sock], [], [], timeout)
        if not ready:
            return None
        frame = receive_packet(self.sock)
        if frame is None:
            raise ConnectionError("the supervisor is gone")
        return frame

    def take_comms(self) -> None:
        """Hand the comm frames that have arrived to their handler."""
        while self.own and (frame := self.poll(0)) is not None:
            if frame[0]["type"] == "comm" and self.on_comm is not None:
                self.on_comm(*frame)

    def ask_input(self, prompt: str, password: bool) -> str:
        """Return what the person at the other end types.

        Raises
        ------
        EOFError
            There is no answer; the text says why.
        """
        self.send_in_order({"type": "input_request", "prompt": prompt, "password": password})
        while True:
            frame = self.poll(None)
            if frame is None:
                continue
            head, body = frame
            if head["type"] == "input":
                if head.get("error"):
                    raise EOFError(str(head["error"]))
                return str(head.get("value", ""))
            if head["type"] == "comm" and self.on_comm is not None:
                self.on_comm(head, body)

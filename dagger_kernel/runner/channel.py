"""The cell process's side of the talk with the supervisor.

Text goes through the pipes of descriptors 1 and 2, everything else through packets. A packet that must
keep its place among text is acknowledged: the supervisor empties the pipes first, then forwards it, then
lets the cell go on.
"""

from __future__ import annotations

import _socket
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
        # Not `socket.socket`: methods of a Python class can be replaced.
        self.sock: Any = _socket.socket(fileno=sock.detach())
        self.acks = acks
        self.pid = os.getpid()
        self.on_comm: Callable[[dict[str, Any], bytes], None] | None = None
        self.answers: deque[dict[str, Any]] = deque()
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
        ready, _, _ = select.select([self.sock], [], [], timeout)
        if not ready:
            return None
        try:
            frame = receive_packet(self.sock, wait=False)
        except BlockingIOError:
            return None  # another thread was faster
        if frame is None:
            raise ConnectionError("the supervisor is gone")
        return frame

    def take(self, timeout: float = 0.0) -> None:
        """Take what has arrived while the cell runs: comms go to their handler, answers are kept."""
        while self.own and (frame := self.poll(timeout)) is not None:
            timeout = 0.0
            if frame[0]["type"] == "input":
                self.answers.append(frame[0])
            elif frame[0]["type"] == "comm" and self.on_comm is not None:
                self.on_comm(*frame)

    def ask_input(self, prompt: str, password: bool) -> str:
        """Return what the person at the other end types.

        Raises
        ------
        EOFError
            There is no answer; the text says why.
        """
        self.answers.clear()
        self.send_in_order({"type": "input_request", "prompt": prompt, "password": password})
        # Another thread's loop may take the answer from the socket: look again now and then.
        while not self.answers:
            self.take(0.1)
        answer = self.answers.popleft()
        if answer.get("error"):
            raise EOFError(str(answer["error"]))
        return str(answer.get("value", ""))

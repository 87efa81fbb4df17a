"""The supervisor's port to one cell process: packets, text, its end.

Reads text in gathered pieces (one print is several writes), keeps it before the packet that was sent
after it, and stops reading when the kernel is slow, so that the cell waits too.
"""

from __future__ import annotations

import os
import selectors
import signal
import struct
import time
from typing import Any, Protocol

from .children import Child
from .interrupts import WAKE_SIGNAL
from .output import drain
from .packets import receive_packet, send_packet
from .protocol import ProtocolError

COALESCE = 0.02
"""Seconds over which text is gathered into one frame while much is printed."""

FIRST = 0.002
"""Seconds that text waits after a pause in printing."""

BURST = 64
"""Packets taken before others get their turn."""

ACK = struct.Struct("Q")


class Listener(Protocol):
    """What the port tells."""

    def cell_text(self, name: str, data: bytes) -> None:
        """Take bytes of stdout or stderr."""

    def cell_text_pause(self) -> None:
        """Send what has been gathered."""

    def cell_frame(self, head: dict[str, Any], body: bytes) -> None:
        """Take a frame; all text before it has been told."""

    def cell_ended(self, status: int) -> None:
        """The process has ended; everything it sent has been told."""


class Port:
    """One cell process, as the supervisor's selector sees it."""

    def __init__(self, child: Child, selector: selectors.BaseSelector, listener: Listener) -> None:
        self.child = child
        self.warm = False
        """Whether the process has nothing left to warm up: else a message must wake it."""
        self._selector = selector
        self._listener = listener
        self._held = False
        self._gathering = False
        self._sock_open = True
        self.flush_at = 0.0
        """When gathered text is due; 0: nothing is gathered."""
        self._flushed = 0.0
        selector.register(child.end, selectors.EVENT_READ, self._on_end)
        self._listen()

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Send a frame to the process, if it can take one."""
        try:
            send_packet(self.child.sock, head, body)
        except OSError:
            return  # gone, or too busy for comms
        if not self.warm:
            self.child.signal(WAKE_SIGNAL)

    def hold(self, held: bool) -> None:
        """Stop reading, or go on."""
        if held != self._held:
            self._held = held
            self._listen()

    def _listen(self) -> None:
        """Register what is to be read now."""
        child = self.child
        self._set(child.sock, self._on_packet, wanted=self._sock_open and not self._held)
        for file in child.pipes.values():
            self._set(file, self._on_text, wanted=not (self._held or self._gathering))

    def _set(self, file: Any, callback: Any, *, wanted: bool) -> None:
        listening = file in self._selector.get_map()
        if wanted and not listening:
            self._selector.register(file, selectors.EVENT_READ, callback)
        elif listening and not wanted:
            self._selector.unregister(file)

    def _on_text(self) -> None:
        """Text is there: gather more for a moment."""
        if not self._gathering:
            self._gathering = True
            self._listen()
            # Of much text, each frame waits for the one before.
            self.flush_at = max(time.monotonic() + FIRST, self._flushed + COALESCE)

    def on_time(self, now: float) -> None:
        """Tell gathered text when it is due."""
        if self.flush_at and now >= self.flush_at:
            self.flush_at = 0.0
            self._gathering = False
            self._flushed = now
            self.read_text()
            self._listener.cell_text_pause()
            self._listen()

    def read_text(self) -> None:
        """Tell what is in the pipes."""
        for name, file in self.child.pipes.items():
            data = drain(file)
            if data:
                self._listener.cell_text(name, data)

    def _on_packet(self) -> None:
        for _ in range(BURST):
            if self._held or not self._take_packet():
                return

    def _take_packet(self) -> bool:
        """Tell one packet; return whether there was one."""
        child = self.child
        try:
            frame = receive_packet(child.sock)
        except BlockingIOError:
            return False
        except (ProtocolError, OSError):
            # User code has written there: nothing it says can be trusted from here on.
            child.signal(signal.SIGKILL)
            frame = None
        if frame is None:
            self._sock_open = False
            self._listen()
            return False
        head, body = frame
        ack = head.pop("ack", None)
        if ack is not None:
            self.read_text()
            self._listener.cell_text_pause()
        self._listener.cell_frame(head, body)
        if isinstance(ack, int):
            try:
                os.write(child.acks, ACK.pack(ack & 0xFFFFFFFFFFFFFFFF))
            except OSError:
                pass  # the process is gone
        return True

    def _on_end(self) -> None:
        status = self.child.wait()
        self._held = False
        while self._sock_open and self._take_packet():
            pass
        self.read_text()
        self._listener.cell_ended(status)

    def close(self) -> None:
        """Forget the process."""
        for file in (self.child.sock, self.child.end, *self.child.pipes.values()):
            self._set(file, None, wanted=False)
        self.child.close()

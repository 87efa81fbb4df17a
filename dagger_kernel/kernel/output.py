"""Publishes the output of one cell: in order, paced, with progress that goes away."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .pacing import Pace

HOLD_SECONDS = 0.02
"""Text written this soon after the last message waits to be joined with what follows."""

PROGRESS_AFTER_SECONDS = 0.5
"""Work that is over sooner shows no progress."""

PROGRESS_EVERY_SECONDS = 0.25

VISIBLE = frozenset({"stream", "display_data", "execute_result", "error", "clear_output"})
"""Messages that make or clear output of the cell itself."""


class Send(Protocol):
    """Sends one IOPub message with the right parent."""

    def __call__(
        self,
        msg_type: str,
        content: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        buffers: list[bytes] | None = None,
    ) -> None:
        """Send it now."""


@dataclass
class _Pending:
    msg_type: str
    content: dict[str, Any]
    metadata: dict[str, Any] | None = None
    buffers: list[bytes] | None = None

    @property
    def stream_bytes(self) -> int:
        return len(self.content["text"]) if self.msg_type == "stream" else 0


class CellOutput:
    """The output of one cell. Used on the main loop only.

    Parameters
    ----------
    send
        Bound to the request: a frame may arrive in a task of another cell's context, so the
        parent is never looked up.
    pace
        Shared by all cells of the kernel.
    clock
        For tests.
    """

    def __init__(self, send: Send, pace: Pace, clock: Callable[[], float] = time.monotonic) -> None:
        self._send, self._pace, self._clock = send, pace, clock
        self._pending: deque[_Pending] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._hold_until = 0.0
        self._progress = _Progress(self._put)
        self._begun = False

    def stream(self, name: str, text: str) -> None:
        """Publish text; neighbouring pieces of one stream may travel together."""
        if not text:
            return
        self._begin("stream")
        last = self._pending[-1] if self._pending else None
        if last is not None and last.msg_type == "stream" and last.content["name"] == name:
            last.content["text"] += text
        else:
            self._pending.append(_Pending("stream", {"name": name, "text": text}))
        self._pump(hold=True)

    def publish(
        self,
        msg_type: str,
        content: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        buffers: list[bytes] | None = None,
    ) -> None:
        """Publish any other message, after all text before it."""
        self._begin(msg_type)
        self._put(msg_type, content, metadata, buffers)

    def progress(self, text: str) -> None:
        """Show the state of long work before the cell's own output; an empty text ends it."""
        if not self._begun:
            self._progress.show(text)

    async def finish(self) -> None:
        """Send what waits, and take progress away."""
        self._progress.end()
        while self._pending:
            self._pump()
            if self._pending:
                await asyncio.sleep(max(self._pace.delay(), 0.001))
        self._cancel_timer()

    def _begin(self, msg_type: str) -> None:
        if not self._begun and msg_type in VISIBLE:
            self._begun = True
            self._progress.replace()

    def _put(
        self,
        msg_type: str,
        content: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        buffers: list[bytes] | None = None,
    ) -> None:
        self._pending.append(_Pending(msg_type, content, metadata, buffers))
        self._pump()

    def _pump(self, *, hold: bool = False) -> None:
        """Send what may be sent now; the rest by a timer."""
        if hold and len(self._pending) == 1:
            wait = self._hold_until - self._clock()
            if wait > 0:
                self._later(wait)
                return
        while self._pending:
            wait = self._pace.delay()
            if wait > 0:
                self._later(wait)
                return
            item = self._pending.popleft()
            self._pace.sent(item.stream_bytes)
            self._send(item.msg_type, item.content, item.metadata, item.buffers)
            if item.msg_type == "stream":
                self._hold_until = self._clock() + HOLD_SECONDS

    def _later(self, wait: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._pump()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Progress:
    """A display that says what long work is at, and leaves nothing behind."""

    def __init__(self, put: Callable[[str, dict[str, Any]], None]) -> None:
        self._put = put
        self._display_id = ""
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None

    def show(self, text: str) -> None:
        if not text:
            self.end()
            return
        self._text = text
        if self._timer is None:
            wait = PROGRESS_EVERY_SECONDS if self._display_id else PROGRESS_AFTER_SECONDS
            self._timer = asyncio.get_running_loop().call_later(wait, self._draw)

    def replace(self) -> None:
        """Let the output that comes now take the display's place."""
        self._end(wait=True)

    def end(self) -> None:
        """Take the display away; nothing may follow."""
        self._end(wait=False)

    def _draw(self) -> None:
        self._timer = None
        first = not self._display_id
        self._display_id = self._display_id or f"dagger-kernel-progress-{uuid.uuid4().hex}"
        self._put(
            "display_data" if first else "update_display_data",
            {
                "data": {"text/plain": f"[sandbox] {self._text}"},
                "metadata": {"dagger_kernel": {"progress": True}},
                "transient": {"display_id": self._display_id},
            },
        )

    def _end(self, *, wait: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._display_id:
            self._display_id = ""
            self._put("clear_output", {"wait": wait})

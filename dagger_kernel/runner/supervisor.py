"""The supervisor: holds the link, the limits and the clock; never runs user code.

It waits in a selector for the link, the cell process's packets and pipes, and the process's end, and
takes a look at ``/proc`` ten times a second while the step runs. Whatever the cell process does, the
supervisor ends the step and says how it ended.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from . import proc
from .children import Child
from .files import Files
from .limits import complete
from .link import FULL, Link
from .output import Output
from .port import Port
from .protocol import EXIT_NO_STEP, PROTOCOL, ProtocolError
from .verdict import Verdict
from .watch import Watch

EXIT_LINK_LOST = 74
"""Exit code when the link broke during a step (EX_IOERR): the outcome is not known, so no layer."""

STANDBY, RUNS, ENDS, OVER = "standby", "runs", "ends", "over"

MAX_STARTS = 3
"""Cell processes started for one step, should they die before it comes."""


class Supervisor:
    """One step's supervisor.

    Parameters
    ----------
    link
        The connected socket.
    nonce
        Identity of the execution.
    start
        Forks a cell process and returns our ends of its sockets and pipes.
    files
        The user's files, seen before any user code ran.
    alone
        Whether all processes that can be seen, but for the init, belong to this step.
    memory_events
        See `entry.serve`.
    """

    def __init__(
        self,
        link: socket.socket,
        nonce: str,
        start: Callable[[], Child],
        files: Files,
        *,
        alone: bool,
        memory_events: int = -1,
    ) -> None:
        self.link = Link(link)
        self.nonce = nonce
        self.start = start
        self.files = files
        self.alone = alone
        self.memory_events = memory_events
        self.state = STANDBY
        self.port: Port | None = None
        self.limits = complete(None)
        self.output = Output(self._emit, self.limits)
        self.verdict = Verdict(self.limits)
        self.watch: Watch | None = None
        self.step: dict[str, Any] = {}
        self.selector = selectors.DefaultSelector()
        self._starts = 0
        self._input_wanted = False
        self._told = False

    def run(self) -> int:
        """Serve one step; return the exit code of the runner."""
        self.link.send(
            {
                "type": "hello",
                "nonce": self.nonce,
                "protocol": PROTOCOL,
                "python": ".".join(map(str, sys.version_info[:3])),
                "pid": os.getpid(),
            }
        )
        self.selector.register(self.link, selectors.EVENT_READ, self._on_link)
        self._spawn()
        try:
            while self.state != OVER:
                self._turn()
            if not self.step:
                return EXIT_NO_STEP
            return 0 if self._told and self.link.flush(60.0) else EXIT_LINK_LOST
        finally:
            self._kill_everything()

    # -- the loop

    def _turn(self) -> None:
        writing = selectors.EVENT_WRITE if self.link.unsent else 0
        self.selector.modify(self.link, selectors.EVENT_READ | writing, self._on_link)
        for key, mask in self.selector.select(self._timeout()):
            if self.state == OVER:
                return
            if key.fileobj is self.link:
                self._on_link(mask)
            elif key.fd in self.selector.get_map():  # an earlier one may have removed it
                key.data()
        now = time.monotonic()
        if self.port is not None and self.state != OVER:
            self.port.on_time(now)
        if self.watch is not None and self.state in (RUNS, ENDS) and now >= self.watch.next_look:
            self.watch.look(now)

    def _timeout(self) -> float | None:
        times = []
        if self.port is not None and self.port.flush_at:
            times.append(self.port.flush_at)
        if self.watch is not None and self.state in (RUNS, ENDS):
            times.append(self.watch.next_look)
        return max(0.0, min(times) - time.monotonic()) if times else None

    # -- the link

    def _on_link(self, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            self.link.push()
            if self.port is not None and self.link.unsent < FULL // 2:
                self.port.hold(False)
        if mask & selectors.EVENT_READ:
            try:
                for head, body in self.link.receive():
                    self._from_kernel(head, body)
            except ProtocolError:
                self.link.closed = True
        if self.link.closed:
            # Nobody is left to hear of the step; a layer must not come of it.
            self.state = OVER

    def _from_kernel(self, head: dict[str, Any], body: bytes) -> None:
        kind = head["type"]
        if kind == "close" and self.state == STANDBY:
            self.state = OVER
        elif kind == "step" and self.state == STANDBY:
            self._begin(head)
        elif kind == "ask":
            self._ask(head)
        elif kind == "interrupt" and self.watch is not None and self.state in (RUNS, ENDS):
            self._input_wanted = False
            self.watch.interrupt()
        elif kind == "input" and self._input_wanted and self.port is not None:
            self._input_wanted = False
            self.port.send(head, body)
        elif kind == "comm" and self.state == RUNS and self.port is not None:
            self.port.send(head, body)

    def _begin(self, step: dict[str, Any]) -> None:
        self.step = step
        self.state = RUNS
        self.limits = complete(step.get("limits"))
        self.output = Output(self._emit, self.limits, screen=step.get("language") == "bash")
        self.verdict = Verdict(self.limits)
        if self.port is None:
            self.verdict.trouble = "the cell process could not be started"
            self._conclude()
            return
        self.files.settle()
        self.port.send(step)
        self.watch = Watch(
            self.port.child,
            self.limits,
            self.verdict,
            alone=self.alone,
            memory_events=self.memory_events,
        )

    def _ask(self, head: dict[str, Any]) -> None:
        if self.state == STANDBY and self.port is not None:
            self.port.send(head)
            return
        late = {
            "status": "error",
            "ename": "TooLate",
            "evalue": "the step has started",
            "traceback": [],
        }
        self.link.send({"type": "answer", "id": head.get("id"), "content": late})

    def _emit(self, head: dict[str, Any], body: bytes = b"") -> None:
        self.link.send(head, body)
        if self.link.unsent > FULL and self.port is not None:
            self.port.hold(True)

    # -- the cell process

    def _spawn(self) -> None:
        self._starts += 1
        self.port = Port(self.start(), self.selector, self)

    def cell_text(self, name: str, data: bytes) -> None:
        """Pass text on."""
        if self.state == STANDBY:
            # Nothing of a user's runs yet: a library that talks while it is imported.
            sys.stderr.buffer.write(data)
            sys.stderr.flush()
        else:
            self.output.feed(name, data)

    def cell_text_pause(self) -> None:
        """Send gathered text."""
        self.output.flush()

    def cell_frame(self, head: dict[str, Any], body: bytes) -> None:
        """Take a frame of the cell process."""
        kind = head["type"]
        if kind == "warmed" and self.port is not None:
            self.port.warm = True
        elif kind == "answer":
            self.link.send(head)
        elif self.state == STANDBY:
            return
        elif kind == "executed" and self.state == RUNS:
            self._executed(head)
        elif kind == "saved" and self.state == ENDS:
            self.verdict.saved(head)
            self._conclude()
        elif kind == "input_request":
            self._input_wanted = True
            self._emit(head)
        elif kind in ("display", "result", "clear", "error", "comm"):
            self.output.frame(head, body)

    def _executed(self, head: dict[str, Any]) -> None:
        """User code has ended: end what it left running."""
        if self.port is None:
            return
        self.state = ENDS
        self.verdict.executed(head)
        if self.watch is not None:
            self.watch.ended()
        cell = self.port.child.pid
        if [process.pid for process in proc.below(os.getpid(), everything=self.alone)] == [cell]:
            return
        proc.let_start(os.getpid(), cell, everything=self.alone)
        spared = frozenset([cell])
        killed = proc.kill_below(os.getpid(), spared, everything=self.alone)
        if killed:
            self.verdict.killed = killed
            names = ", ".join(killed[:8]) + (", ..." if len(killed) > 8 else "")
            self.port.read_text()
            self.output.note(f"ended with the cell: {len(killed)} process(es) still ran ({names})")

    def cell_ended(self, status: int) -> None:
        """The cell process has ended; unless the step is over, it has not said everything."""
        port = self.port
        if self.state == OVER or port is None:
            return
        if self.state == STANDBY:
            port.close()
            self.port = None
            if self._starts < MAX_STARTS:
                self._spawn()
            return
        self.verdict.died(status)
        self._conclude()

    # -- the end

    def _conclude(self) -> None:
        """Send what is left, and ``done``."""
        if self.watch is not None:
            self.watch.final_look()
        if not self.verdict.complete:
            # Else only the cell process is left, and it is on its way out: no need to wait.
            self._kill_everything()
        if self.port is not None:
            self.port.read_text()
        self.output.finish()
        for frame in self.verdict.error_frames():
            self.link.send(frame)
        exports = self.step.get("exports") or {}
        count = 0
        try:
            count = self.files.report(
                self.link.send, self.limits, exports.get("exclude") or (), self.nonce
            )
        except OSError as error:
            self.output.note(f"the files could not be listed: {error}")
        if self.files.unnamed:
            self.output.note(f"{self.files.unnamed} more files are not exported")
        usage = self.watch.usage() if self.watch is not None else {}
        usage |= {"output_bytes": self.output.total, "files": count}
        self.link.send(self.verdict.done(usage, truncated=self.output.truncated))
        self._told = True
        self.state = OVER

    def _kill_everything(self) -> None:
        proc.kill_below(os.getpid(), frozenset(), everything=self.alone)
        if self.port is not None:
            self.port.child.wait()
        reaped = proc.reap()
        if self.watch is not None:
            self.watch.reaped += reaped

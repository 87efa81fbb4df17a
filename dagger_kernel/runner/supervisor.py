"""The supervisor: holds the link, the limits and the clock; never runs user code.

It waits in a selector for the link, the cell process's packets and pipes, and the process's end, and
takes a look at ``/proc`` ten times a second while the step runs. Whatever the cell process does, the
supervisor ends the step and says how it ended.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from . import proc
from .children import Child
from .files import Files
from .interrupts import WAKE_SIGNAL
from .limits import complete
from .link import Link
from .output import Output, drain
from .packets import receive_packet, send_packet
from .protocol import EXIT_NO_STEP, PROTOCOL, ProtocolError
from .verdict import Verdict
from .watch import Watch

COALESCE = 0.02
"""Seconds over which text is gathered into one frame while much is printed."""

FIRST = 0.002
"""Seconds that text waits after a pause in printing."""

ACK = struct.Struct("Q")
EXIT_LINK_LOST = 74
"""Exit code when the link broke during a step (EX_IOERR): the outcome is not known, so no layer."""

STANDBY, RUNS, ENDS, OVER = "standby", "runs", "ends", "over"


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
    is_init
        Whether this process is the init of a pid namespace of its own.
    """

    def __init__(
        self,
        link: socket.socket,
        nonce: str,
        start: Callable[[], Child],
        files: Files,
        *,
        is_init: bool,
    ) -> None:
        self.link = Link(link)
        self.nonce = nonce
        self.start = start
        self.files = files
        self.is_init = is_init
        self.state = STANDBY
        self.child: Child | None = None
        self.limits = complete(None)
        self.output = Output(self._emit, 0, 0)
        self.verdict = Verdict(self.limits)
        self.watch: Watch | None = None
        self.step: dict[str, Any] = {}
        self.selector = selectors.DefaultSelector()
        self._flush_at = 0.0
        self._flushed = 0.0
        self._warm = False
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
        self.selector.modify(
            self.link,
            selectors.EVENT_READ | (selectors.EVENT_WRITE if self.link.unsent else 0),
            self._on_link,
        )
        for key, mask in self.selector.select(self._timeout()):
            if self.state == OVER:
                return
            if key.fileobj is self.link:
                key.data(mask)
            else:
                key.data()
        self._on_time()

    def _timeout(self) -> float | None:
        times = []
        if self._flush_at:
            times.append(self._flush_at)
        if self.watch is not None and self.state in (RUNS, ENDS):
            times.append(self.watch.next_look)
        if not times:
            return 1.0 if self.is_init and self.state != STANDBY else None
        return max(0.0, min(times) - time.monotonic())

    def _on_time(self) -> None:
        now = time.monotonic()
        if self._flush_at and now >= self._flush_at:
            self._flush_at = 0.0
            self._listen_to_pipes(wanted=True)
            self._read_pipes()
            self.output.flush()
            self._flushed = now
        if self.watch is not None and self.state in (RUNS, ENDS) and now >= self.watch.next_look:
            self.watch.look(now)

    # -- the link

    def _on_link(self, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            self.link.push()
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
        elif kind == "input" and self._input_wanted:
            self._input_wanted = False
            self._to_cell(head, body)
        elif kind == "comm" and self.state == RUNS:
            self._to_cell(head, body)

    def _begin(self, step: dict[str, Any]) -> None:
        if self.child is None:
            self._spawn()
        self.step = step
        self.state = RUNS
        self.limits = complete(step.get("limits"))
        self.output = Output(
            self._emit, int(self.limits["output_bytes"]), int(self.limits["kept_output_bytes"])
        )
        self.verdict = Verdict(self.limits)
        if self.child is None:
            self._conclude("the cell process could not be started")
            return
        self.files.settle()
        self._to_cell(step)
        self.watch = Watch(self.child, self.limits, self.verdict, is_init=self.is_init)

    def _ask(self, head: dict[str, Any]) -> None:
        if self.state == STANDBY and self.child is not None:
            self._to_cell(head)
        else:
            self.link.send(
                {
                    "type": "answer",
                    "id": head.get("id"),
                    "content": {
                        "status": "error",
                        "ename": "TooLate",
                        "evalue": "the step has started",
                        "traceback": [],
                    },
                }
            )

    def _emit(self, head: dict[str, Any], body: bytes = b"") -> None:
        self.link.send(head, body)
        if self.link.unsent > (8 << 20):
            # The cell waits for a slow kernel; the clock does not.
            self._hold_back()

    def _hold_back(self) -> None:
        self._listen_to_pipes(wanted=False)
        self._flush_at = time.monotonic() + 0.1

    # -- the cell process

    def _spawn(self) -> None:
        self._starts += 1
        if self._starts > 3:
            return
        self._warm = False
        child = self.child = self.start()
        self.selector.register(child.sock, selectors.EVENT_READ, self._on_packet)
        self.selector.register(child.end, selectors.EVENT_READ, self._on_end)
        self._listen_to_pipes(wanted=True)

    def _listen_to_pipes(self, *, wanted: bool) -> None:
        if self.child is None:
            return
        for file in self.child.pipes.values():
            listening = file in self.selector.get_map()
            if wanted and not listening:
                self.selector.register(file, selectors.EVENT_READ, self._on_text)
            elif listening and not wanted:
                self.selector.unregister(file)

    def _to_cell(self, head: dict[str, Any], body: bytes = b"") -> None:
        if self.child is None:
            return
        try:
            send_packet(self.child.sock, head, body)
        except OSError:
            return  # gone, or too busy for comms
        if not self._warm:
            self.child.signal(WAKE_SIGNAL)

    def _on_text(self) -> None:
        """Text is there: gather more for a moment, then send."""
        now = time.monotonic()
        if self.state == STANDBY:
            self._read_pipes()
            return
        self._listen_to_pipes(wanted=False)
        # One print is several writes: even the first waits a moment.
        self._flush_at = self._flush_at or max(now + FIRST, self._flushed + COALESCE)

    def _read_pipes(self) -> bool:
        """Read what is in the pipes; return whether anything was."""
        if self.child is None:
            return False
        found = False
        for name, file in self.child.pipes.items():
            data = drain(file)
            if data and self.state != STANDBY:
                found = True
                self.output.feed(name, data)
            elif data:
                # Nothing of a user's runs yet: a library that talks while it is imported.
                sys.stderr.buffer.write(data)
                sys.stderr.flush()
        return found

    def _on_packet(self) -> None:
        child = self.child
        if child is None:
            return
        for _ in range(64):
            try:
                frame = receive_packet(child.sock)
            except BlockingIOError:
                return
            except (ProtocolError, OSError):
                child.signal(signal.SIGKILL)
                return
            if frame is None:
                self.selector.unregister(child.sock)
                return
            self._from_cell(*frame)
            if self.state == OVER:
                return

    def _from_cell(self, head: dict[str, Any], body: bytes) -> None:
        ack = head.pop("ack", None)
        if ack is not None:
            self._read_pipes()
            self.output.flush()
        kind = head["type"]
        if kind == "warmed":
            self._warm = True
        elif kind == "answer":
            self.link.send(head)
        elif kind == "executed":
            self._executed(head)
        elif kind == "saved":
            self.verdict.saved(head)
            self._conclude()
        elif kind in ("display", "result", "clear", "error", "comm", "input_request"):
            self._forward(head, body)
        if ack is not None and self.child is not None:
            try:
                os.write(self.child.acks, ACK.pack(ack))
            except OSError:
                pass  # the process is gone

    def _forward(self, head: dict[str, Any], body: bytes) -> None:
        kind = head["type"]
        if kind == "input_request":
            self._input_wanted = True
        data = head.get("data")
        if isinstance(data, dict) and isinstance(data.get("text/plain"), str):
            shown = self.output.count(data["text/plain"])
            if shown != data["text/plain"]:
                head["data"] = data | {"text/plain": shown + self.output.marker()}
        self._emit(head, body)

    def _executed(self, head: dict[str, Any]) -> None:
        """User code has ended: end what it left running."""
        child = self.child
        if child is None:
            return
        self.state = ENDS
        self.verdict.executed(head)
        if self.watch is not None:
            self.watch.ended()
        killed = proc.kill_below(os.getpid(), frozenset([child.pid]), everything=self.is_init)
        if killed:
            self.verdict.killed = killed
            names = ", ".join(killed[:8]) + (", ..." if len(killed) > 8 else "")
            self._read_pipes()
            self.output.note(
                "stderr",
                f"[dagger_kernel] ended with the cell: {len(killed)} process(es) still ran ({names})\n",
            )

    def _on_end(self) -> None:
        """The cell process has ended without having said everything."""
        child = self.child
        if child is None:
            return
        status = child.wait()
        self._on_packet_rest()
        if self.state == OVER:
            return
        for file in (child.sock, child.end):
            if file in self.selector.get_map():
                self.selector.unregister(file)
        if self.state == STANDBY:
            self._read_pipes()
            self._listen_to_pipes(wanted=False)
            child.close()
            self.child = None
            if self._starts < 3:
                self._spawn()
            return
        self.verdict.died(status)
        self._conclude()

    def _on_packet_rest(self) -> None:
        """Take the packets that the process sent before it ended."""
        if self.child is not None and self.child.sock in self.selector.get_map():
            self._on_packet()

    # -- the end

    def _conclude(self, trouble: str = "") -> None:
        """Send what is left, and ``done``."""
        if self.watch is not None:
            self.watch.final_look()
        if not self.verdict.complete:
            # Else only the cell process is left, and it is on its way out: no need to wait.
            self._kill_everything()
        self._read_pipes()
        self.output.finish()
        if trouble:
            self.verdict.trouble = trouble
        for frame in self.verdict.error_frames():
            self.link.send(frame)
        exports = self.step.get("exports") or {}
        try:
            count = self.files.report(self.link.send, self.limits, exports.get("exclude") or ())
        except OSError as error:
            count = 0
            self.output.note("stderr", f"[dagger_kernel] the files could not be listed: {error}\n")
        usage = self.watch.usage() if self.watch is not None else {}
        usage |= {"output_bytes": self.output.total, "files": count}
        self.link.send(self.verdict.done(usage, truncated=self.output.truncated))
        self._told = True
        self.state = OVER

    def _kill_everything(self) -> None:
        proc.kill_below(os.getpid(), frozenset(), everything=self.is_init)
        if self.child is not None:
            self.child.wait()
        if self.watch is not None:
            self.watch.reaped += proc.reap()
        else:
            proc.reap()

"""Starting the cell process."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from .descriptors import lift
from .interrupts import OURS
from .page import SharedPage

PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4

PIPE_SIZE = 1 << 18
"""Bytes a cell may print while the supervisor gathers text."""


@dataclass
class Child:
    """The supervisor's ends of a cell process.

    Attributes
    ----------
    pid
        Its process id; it leads a session and a process group of its own.
    end
        A descriptor that is readable once it has ended.
    sock
        Packets, both ways.
    acks
        Where acknowledgements are written.
    pipes
        Its stdout and stderr.
    """

    pid: int
    end: int
    sock: socket.socket
    acks: int
    pipes: dict[str, int]
    page: SharedPage
    status: int | None = field(default=None)
    cpu: float = 0.0

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to the process, or to its whole group."""
        if self.status is not None:
            return
        try:
            if group:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except OSError:
            pass  # it has just ended

    def wait(self) -> int:
        """Return how it ended: the exit code, or the negative signal. Waits for the end."""
        if self.status is None:
            try:
                _pid, status, usage = os.wait4(self.pid, 0)
                self.status = os.waitstatus_to_exitcode(status)
                self.cpu = usage.ru_utime + usage.ru_stime
            except ChildProcessError:
                self.status = 0
        return self.status

    def close(self) -> None:
        """Close our ends."""
        self.sock.close()
        for file in (self.end, self.acks, *self.pipes.values()):
            os.close(file)


def close_others(*kept: int) -> None:
    """Close every descriptor but the standard ones and those named: the supervisor's are not the cell's."""
    after = 3
    for file in sorted(kept):
        os.closerange(after, file)
        after = file + 1
    os.closerange(after, 1 << 16)


def spawn(run: Callable[[socket.socket, int, SharedPage], None], close: list[int]) -> Child:
    """Fork a cell process.

    Parameters
    ----------
    run
        What the process does, given its socket, its end of the acknowledgements and the shared page; it must not return.
    close
        Descriptors that are not the cell's business.
    """
    page = SharedPage()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ack_reader, ack_writer = os.pipe()
    out_reader, out_writer = os.pipe()
    err_reader, err_writer = os.pipe()
    # What is sent before the process has its handlers waits until then: `Interrupts.install` unblocks.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, OURS)
    pid = os.fork()
    if pid == 0:
        try:
            for file in (ours.fileno(), ack_writer, out_reader, err_reader, *close):
                os.close(file)
            ours.detach()
            os.setsid()
            empty = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((empty, 0), (out_writer, 1), (err_writer, 2)):
                os.dup2(source, target)
                os.close(source)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            libc = ctypes.CDLL(None)
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            # The supervisor cannot be traced; the cell may look at itself, and the supervisor at it.
            libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
            close_others(theirs.fileno(), ack_reader)
            run(socket.socket(fileno=lift(theirs.detach())), lift(ack_reader), page)
        finally:
            os._exit(70)
    signal.pthread_sigmask(signal.SIG_SETMASK, held)
    theirs.close()
    for file in (ack_reader, out_writer, err_writer):
        os.close(file)
    ours.setblocking(False)
    for file in (out_reader, err_reader):
        os.set_blocking(file, False)
        try:
            fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        except OSError:
            pass  # over the user's quota of pipe memory: the default size works too
    os.set_blocking(ack_writer, False)
    end = os.pidfd_open(pid)
    return Child(pid, end, ours, ack_writer, {"stdout": out_reader, "stderr": err_reader}, page)

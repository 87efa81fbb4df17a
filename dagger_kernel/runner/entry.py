"""Serve one step on a connected socket."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any

from .children import Child, spawn
from .files import Files
from .link import Link
from .page import SharedPage
from .protocol import ProtocolError
from .supervisor import Supervisor

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
HIDDEN = ("OTEL_", "TRACEPARENT", "TRACESTATE", "BAGGAGE", "DAGGER_", "_EXPERIMENTAL_DAGGER")
"""Beginnings of environment variables that are the engine's business."""


def serve(
    link: socket.socket,
    nonce: str,
    *,
    state_dir: str = "/.dk",
    home: str = "/home/sandbox",
    shell: Any = None,
    is_init: bool = False,
    alone: bool = False,
    preload: Sequence[str] = (),
    linger: float = 0.0,
    memory_events: int = -1,
) -> int:
    """Serve one step.

    Parameters
    ----------
    link
        Connected stream socket to the kernel; this function owns it.
    nonce
        Identity of the one execution, in hexadecimal digits.
    state_dir, home
        Where state is kept; the user's directory.
    shell
        What `warmup.warm` returned before a fork; None: made here, while idle.
    is_init
        Whether this process is the init of a pid namespace made for this step.
    alone
        Whether the pid namespace is this step's although another process is its init, as in a container.
    preload
        Libraries to import while idle, when there is no warm shell.
    linger
        Seconds to wait, after the outcome, for the kernel's ``close``: Dagger's socket forwarding drops
        what is on its way when the process ends.
    memory_events
        Descriptor of ``memory.events`` of the step's own cgroup, which tells of processes that were killed for
        their memory; -1: there is none.

    Returns
    -------
    int
        Exit code for the process: 0 once the step's outcome is delivered, `protocol.EXIT_NO_STEP`
        if no step came, `supervisor.EXIT_LINK_LOST` if the link broke during the step.
    """
    hide_environment()
    prepare_process(is_init=is_init)
    files = Files(home, state_dir)

    def run(sock: socket.socket, acks: int, page: SharedPage) -> None:
        from .cell import Cell, main
        from .channel import Channel

        main(
            Cell(
                Channel(sock, acks),
                page,
                state_dir=state_dir,
                home=home,
                nonce=nonce,
                shell=shell,
                names=preload,
                own_pids=is_init,
            )
        )

    def start() -> Child:
        return spawn(run, [fd for fd in (link.fileno(), memory_events) if fd >= 0])

    try:
        supervisor = Supervisor(
            link, nonce, start, files, alone=alone or is_init, memory_events=memory_events
        )
        code = supervisor.run()
        if code == 0 and linger:
            see_off(supervisor.link, linger)
        return code
    finally:
        link.close()


def see_off(link: Link, seconds: float) -> None:
    """Wait until the kernel says that it has the outcome."""
    deadline = time.monotonic() + seconds
    with contextlib.suppress(ProtocolError):
        while not link.closed and (left := deadline - time.monotonic()) > 0:
            select.select([link], [], [], left)
            if any(head["type"] == "close" for head, _ in link.receive()):
                return


def hide_environment() -> None:
    """Remove the engine's own variables from the environment."""
    for name in [name for name in os.environ if name.startswith(HIDDEN)]:
        del os.environ[name]


def prepare_process(*, is_init: bool) -> None:
    """Make this process a supervisor."""
    libc = ctypes.CDLL(None, use_errno=True)
    # The cell has the same user id: it must not trace the supervisor, nor open its memory or descriptors.
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if not is_init:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)

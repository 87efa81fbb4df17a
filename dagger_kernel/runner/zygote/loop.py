"""The zygote's loop: take requests, fork rooms, report exits.

Datagrams on one ``SOCK_SEQPACKET`` socket, JSON each. In: ``{"op": "open", "room": n, ...}`` with the
room's end of the link as ancillary descriptor, ``{"op": "kill", "room": n}``. Out: ``{"event": "warm"}``
once, ``{"event": "listening", "room"}`` with a room's proxy socket, ``{"event": "failed", "room", "error"}`` from a child that could not become a room,
``{"event": "exited", "room", "status"}``. The end of the socket ends the zygote, and bubblewrap's pid
namespace takes every room with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import importlib
import json
import os
import selectors
import signal
import socket
import sys
from typing import Any, NoReturn

from .. import own
from ..preload import modules_of, preload
from ..protocol import EXIT_NO_STEP
from . import syscalls as sc
from .enter import enter, lend_home

MAX_DATAGRAM = 64 * 1024
MAX_FDS = 3
"""With a request: the link; and of a cgroup ``cgroup.procs`` and ``memory.events``, if there is one."""
NEEDED = (
    "entry",
    "cell",
    "channel",
    "execute",
    "sources",
    "asks",
    "comms",
    "quirks",
    "loop",
    "state",
)
"""Modules of the runner that every room uses: imported once here, not in each room."""


def main(control_fd: int, packages: list[str]) -> None:
    """Get ready, then serve requests until the control socket closes."""
    from ..warmup import warm

    lend_home()
    shell = warm()
    for name in NEEDED:
        importlib.import_module(f"...{name}", __name__)
    importlib.import_module("...state", __name__).prime()
    own.keep()
    Zygote(socket.socket(fileno=control_fd), shell, modules_of(packages)).run()


class Zygote:
    """Forks rooms from a preloaded process; single-threaded, so forking is safe.

    Rooms do not wait for libraries: the modules are imported while nothing is asked, and what is missing in a
    room goes on being imported there.
    """

    def __init__(self, control: socket.socket, shell: Any, modules: list[str]) -> None:
        self._control = control
        self._shell = shell
        self._missing = modules
        self._rooms: dict[int, int] = {}  # pid -> room
        self._own_pid_ns = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._wake_in, self._wake_out = socket.socketpair()
        for end in (self._wake_in, self._wake_out):
            end.setblocking(False)
        self._distributions = _distributions()

    def run(self) -> None:
        """Serve until the control socket closes."""
        signal.set_wakeup_fd(self._wake_out.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        selector = selectors.DefaultSelector()
        selector.register(self._control, selectors.EVENT_READ)
        selector.register(self._wake_in, selectors.EVENT_READ)
        self._send({"event": "warm", "python": sys.version.split()[0]})
        while True:
            found = selector.select(0 if self._missing else None)
            for ready, _ in found:
                if ready.fileobj is self._wake_in:
                    self._wake_in.recv(4096)
                    self._reap()
                elif not self._take():
                    return
            if not found:
                self._preload()

    def _preload(self) -> None:
        from ..warmup import freeze

        preload(self._missing.pop(0))
        if not self._missing:
            freeze()

    def _take(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._control, MAX_DATAGRAM, MAX_FDS)
        if not data:
            return False
        request = json.loads(data)
        if request["op"] == "open":
            self._open(request, fds)
        elif request["op"] == "kill":
            for pid, room in self._rooms.items():
                if room == request["room"]:
                    os.kill(pid, signal.SIGKILL)
        return True

    def _open(self, request: dict[str, Any], fds: list[int]) -> None:
        # The child is born as pid 1 of a new namespace without a second fork:
        # unshare applies to the next child, then the zygote steps back.
        sc.unshare(sc.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            self._become_room(request, fds[0], fds[1:])
        sc.setns(self._own_pid_ns, sc.CLONE_NEWPID)
        for fd in fds:
            os.close(fd)
        self._rooms[pid] = request["room"]

    def _become_room(self, request: dict[str, Any], link_fd: int, cgroup: list[int]) -> None:
        code, linked = 70, False  # EX_SOFTWARE
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if cgroup:
                with contextlib.suppress(OSError):
                    os.write(cgroup[0], b"0")  # this process, and all that come of it
            enter(request, functools.partial(self._announce, request["room"]))
            stale = not self._distributions <= _distributions()
            if stale or not request["warm"]:
                _become_cold(request["nonce"], link_fd, cgroup[1:])
            linked = True
            os.dup2(link_fd, self._control.fileno(), inheritable=False)
            kept = self._control.fileno()
            free = kept + 1
            if cgroup:
                os.dup2(cgroup[1], free, inheritable=False)
                free += 1
            os.closerange(3, kept)
            os.closerange(free, 1 << 16)
            importlib.invalidate_caches()
            os.chdir("/home/sandbox")
            from ..entry import serve

            code = serve(
                socket.socket(fileno=kept),
                request["nonce"],
                shell=self._shell,
                preload=self._missing,
                is_init=True,
                memory_events=kept + 1 if cgroup else -1,
            )
        except BaseException as error:
            why = f"{type(error).__name__}: {error}"
            if linked:
                # The control socket is gone; the kernel keeps the last lines of standard error.
                print(f"a room's runner failed: {why}", file=sys.stderr, flush=True)
            else:
                self._send({"event": "failed", "room": request["room"], "error": f"{why}."})
            code = code or EXIT_NO_STEP
        finally:
            os._exit(code)

    def _reap(self) -> None:
        while self._rooms:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            room = self._rooms.pop(pid, None)
            if room is not None:
                code = os.waitstatus_to_exitcode(status)
                self._send({"event": "exited", "room": room, "status": code})

    def _announce(self, room: int, listener: socket.socket) -> None:
        message = json.dumps({"event": "listening", "room": room}).encode("ascii")
        socket.send_fds(self._control, [message], [listener.fileno()])

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._control.send(json.dumps(message).encode("ascii"))
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)  # the kernel is gone


def _become_cold(nonce: str, link_fd: int, memory_events: list[int]) -> NoReturn:
    """Become a fresh interpreter that serves the link, and knows the room's ``memory.events`` where it has one."""
    start = (
        "import sys; sys.path.insert(0, '/opt/dagger-kernel'); "
        "import dagger_kernel_runner.__main__ as m; sys.path.pop(0); sys.exit(m.main())"
    )
    argv = [sys.executable, "-c", start, "--nonce", nonce, "--init"]
    # Through numbers above both ends: one must not be overwritten before it is copied.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (link_fd, *memory_events)]
    options = zip(high, ("--fd", "--memory-events"), strict=False)
    for number, (fd, option) in enumerate(options, start=3):
        os.dup2(fd, number, inheritable=True)
        argv += [option, str(number)]
    os.closerange(3 + len(high), 1 << 16)
    os.execv(sys.executable, argv)


def _distributions() -> frozenset[str]:
    """Return the names of the installed distributions, versions included.

    A chain that replaced or removed one of the base's must not run on modules
    imported from the old one; added ones do no harm.
    """
    prefix = os.path.join(sys.prefix, "lib")
    for name in os.listdir(prefix):
        packages = os.path.join(prefix, name, "site-packages")
        if os.path.isdir(packages):
            return frozenset(n for n in os.listdir(packages) if n.endswith(".dist-info"))
    return frozenset()

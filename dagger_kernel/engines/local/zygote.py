"""The host's side of a zygote: start it on a base, ask it for rooms, hear of their ends."""

from __future__ import annotations

import array
import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import EngineUnavailableError, RoomLostError
from ...settings import Settings
from ..layout import HOME, RUNNER_PLACE, VENV
from .container import Interpreter, common

START_SECONDS = 60.0
MAX_DATAGRAM = 64 * 1024
WORDS_BYTES = 4096
"""How much is kept of what the zygote and its rooms write to their standard error."""


class Zygote:
    """One preloaded process; see `dagger_kernel.runner.zygote`. Belongs to one event loop."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._rooms = itertools.count(1)
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._listeners: dict[int, asyncio.Future[socket.socket]] = {}
        self.failures: dict[int, str] = {}
        loop = asyncio.get_running_loop()
        self._warm: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        control.setblocking(False)
        loop.add_reader(control, self._read)
        self._words = b""
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        # Read all the time: libraries may talk while rooms import them, and a full pipe would hold those.
        loop.add_reader(process.stderr, self._listen)

    @classmethod
    def start(
        cls,
        settings: Settings,
        interpreter: Interpreter,
        *,
        base: Path,
        layers: Path,
        runner: Path,
        scratch: Path,
    ) -> Zygote:
        """Start a zygote; it preloads in the background. Call on the main thread.

        bubblewrap dies with the thread that started it, so a worker thread must not.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fs = os.fspath(base / "fs")
        code = (
            f"import sys; sys.path.insert(0, {RUNNER_PLACE!r}); "
            "from dagger_kernel_runner.zygote.loop import main; sys.path.pop(0); "
            f"main({theirs.fileno()}, {settings.packages.split()!r})"
        )
        command = common(settings, interpreter, scratch, network=settings.network)
        command += ["--cap-add", "ALL"]
        for place in ("/room", "/.dk", "/skills", "/tmp"):  # noqa: S108
            command += ["--dir", place]
        command += ["--ro-bind", os.fspath(runner), RUNNER_PLACE, "--ro-bind", fs, "/B"]
        command += ["--bind", os.fspath(layers), "/L", "--ro-bind", f"{fs}/home/sandbox", HOME]
        command += ["--chdir", HOME, "--", f"{VENV}/bin/python", "-c", code]
        try:
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            ours.close()
            raise EngineUnavailableError(
                f"bubblewrap could not be started: {error}.", engine="local"
            ) from error
        finally:
            theirs.close()
        return cls(process, ours)

    @property
    def alive(self) -> bool:
        """Whether it can still fork rooms."""
        return self._process.poll() is None and self._control.fileno() >= 0

    async def warm(self) -> None:
        """Wait until the libraries are loaded.

        Raises
        ------
        EngineUnavailableError
            The zygote ended, or takes longer than a minute.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                await asyncio.shield(self._warm)
        except TimeoutError:
            raise EngineUnavailableError(
                f"The local engine did not start within {START_SECONDS:.0f} s.", engine="local"
            ) from None

    def open(
        self, request: dict[str, Any], cgroup: Sequence[int] = ()
    ) -> tuple[int, socket.socket]:
        """Fork a room; return its number and the kernel's end of its link.

        ``cgroup``: descriptors of the one to enter; see `cgroups.Cgroup`.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        room = next(self._rooms)
        self._exits[room] = self._loop.create_future()
        if request["network"] == "proxy":
            self._listeners[room] = self._loop.create_future()
        data = json.dumps({**request, "op": "open", "room": room}).encode("ascii")
        fds = array.array("i", [theirs.fileno(), *cgroup])
        try:
            self._control.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        except OSError as error:
            ours.close()
            raise RoomLostError("The local engine's zygote is gone.", engine="local") from error
        finally:
            theirs.close()
        return room, ours

    async def listener(self, room: int) -> socket.socket:
        """Return the listening socket inside a room's network, for its proxy; the caller owns it."""
        return await self._listeners.pop(room)

    def kill(self, room: int) -> None:
        """End a room at once."""
        with contextlib.suppress(OSError):
            self._control.send(json.dumps({"op": "kill", "room": room}).encode("ascii"))

    async def exited(self, room: int) -> int:
        """Wait for the end of a room; return its exit code."""
        return await asyncio.shield(self._exits[room])

    def forget(self, room: int) -> None:
        """Drop what is known of an ended room."""
        self._exits.pop(room, None)
        unused = self._listeners.pop(room, None)
        if unused is not None and unused.done() and not unused.cancelled():
            unused.result().close()
        self.failures.pop(room, None)

    def close(self) -> None:
        """End the zygote and every room."""
        for unused in self._listeners.values():
            if unused.done() and not unused.cancelled():
                unused.result().close()
        self._listeners.clear()
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
        if self._process.poll() is None:
            _kill_with_children(self._process)
        self._process.wait()
        assert self._process.stderr is not None
        self._loop.remove_reader(self._process.stderr)
        self._process.stderr.close()
        self._lose("The local engine was closed.")

    def _read(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, MAX_DATAGRAM, 1)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self._loop.remove_reader(self._control)
            self._control.close()
            self._lose(f"The local engine's zygote ended. {self.last_words()}".strip())
            return
        message = json.loads(data)
        if message["event"] == "warm":
            if not self._warm.done():
                self._warm.set_result(None)
        elif message["event"] == "listening":
            self._take_listener(message["room"], socket.socket(fileno=fds[0]))
        elif message["event"] == "failed":
            self.failures[message["room"]] = message["error"]
        elif message["event"] == "exited":
            waiting = self._exits.get(message["room"])
            if waiting and not waiting.done():
                waiting.set_result(message["status"])

    def _take_listener(self, room: int, listener: socket.socket) -> None:
        waiting = self._listeners.get(room)
        if waiting is None or waiting.done():
            listener.close()
        else:
            waiting.set_result(listener)

    def _listen(self) -> None:
        assert self._process.stderr is not None
        try:
            data = os.read(self._process.stderr.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if data:
            self._words = (self._words + data)[-WORDS_BYTES:]
        else:
            self._loop.remove_reader(self._process.stderr)

    def last_words(self) -> str:
        """Return the last line that the zygote or a room of it wrote to its standard error."""
        if self._process.stderr is not None and not self._process.stderr.closed:
            self._listen()
        lines = self._words.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _lose(self, why: str) -> None:
        if not self._warm.done():
            self._warm.set_exception(EngineUnavailableError(why, engine="local"))
            self._warm.exception()
        for future in self._exits.values():
            if not future.done():
                future.set_result(-9)


def _kill_with_children(process: subprocess.Popen[bytes]) -> None:
    """Kill bubblewrap and the init it has made: one that still waits to be set up would wait for ever."""
    process.send_signal(signal.SIGSTOP)  # it makes no other meanwhile
    with contextlib.suppress(OSError):
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        place = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        for child in place.read_text("ascii").split():
            os.kill(int(child), signal.SIGKILL)
    process.kill()

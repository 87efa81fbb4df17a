"""The kernel's listening socket: execs connect to it and say which nonce they are.

One socket serves every room and every replayed step of this engine object; the ``hello`` frame routes. The
path that the engine is told is part of what it caches by, so it must be the same text in every kernel. It is
``/proc/self/cwd/link.sock``: the session process (whose working directory is private to this kernel)
resolves it, so that kernels on one sandbox neither meet nor steal from each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...errors import LinkError
from ...runner import protocol
from ..link import Link

NAME = "link.sock"
HELLO_SECONDS = 30.0
MAX_HELLO = 4096
MAX_STRANGERS = 64
"""Connections that have not said who they are."""

Arrived = Callable[["Visitor"], None]


@dataclass
class Visitor:
    """A connected exec."""

    nonce: str
    link: Link


class LinkServer:
    """Listens in the connection's private directory. Belongs to one event loop."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._expected: dict[str, Arrived] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.path = Path()

    async def listen(self, directory: Path) -> None:
        """Start listening; nothing when it does already."""
        if self._server is None:
            self.path = directory / NAME
            self._server = await asyncio.start_unix_server(
                self._greet, self.path, backlog=64, limit=1 << 20
            )
            os.chmod(self.path, 0o600)

    def expect(self, nonce: str, arrived: Arrived) -> None:
        """Hand over the next exec of this nonce."""
        self._expected[nonce] = arrived

    def forget(self, nonce: str) -> None:
        """Turn away execs of this nonce."""
        self._expected.pop(nonce, None)

    async def close(self) -> None:
        """Stop listening. What is connected stays so."""
        if self._server is not None:
            self._server.close()
            self._server = None
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            with contextlib.suppress(OSError):
                self.path.unlink()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(reader, writer)
        task = asyncio.current_task()
        # User code can connect too: what a stranger can use up is bounded.
        if task is None or len(self._tasks) >= MAX_STRANGERS:
            link.close()
            return
        self._tasks.add(task)
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                nonce = await read_hello(reader)
        except (OSError, EOFError, protocol.ProtocolError):  # a TimeoutError is an OSError
            nonce = ""
        except asyncio.CancelledError:
            link.close()
            return
        finally:
            self._tasks.discard(task)
        arrived = self._expected.pop(nonce, None)
        if arrived is None:
            link.close()  # an exec that nobody waits for ends without a step and leaves nothing
        else:
            arrived(Visitor(nonce, link))


async def read_hello(reader: asyncio.StreamReader) -> str:
    """Return the nonce of a visitor's first frame.

    Raises
    ------
    ProtocolError
        It is no small ``hello``.
    EOFError, ConnectionError
        There is none.
    """
    head_size, body_size = protocol.decode_header(await reader.readexactly(protocol.HEADER.size))
    if head_size > MAX_HELLO or body_size:
        raise protocol.ProtocolError("the first frame is too large")
    head = protocol.decode_head(await reader.readexactly(head_size))
    if head["type"] != "hello":
        raise protocol.ProtocolError("the first frame is no hello")
    return str(head.get("nonce", ""))


def host_path(directory: Path, sandbox_id: str) -> str:
    """Return the path of the socket as the engine is told it.

    Without ``/proc`` (macOS) it is a path of this user and sandbox, a link to the kernel's own socket: the
    kernel that opened a room last answers.
    """
    if os.path.isdir("/proc/self/cwd"):
        return f"/proc/self/cwd/{NAME}"
    name = hashlib.sha256(sandbox_id.encode()).hexdigest()[:16]
    place = directory.parent / f"dagger-kernel-links-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    if place.lstat().st_uid != os.getuid():
        raise LinkError(f"The directory {place} belongs to somebody else.")
    fresh = place / f"{name}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(directory / NAME)
    os.replace(fresh, place / f"{name}.sock")
    return os.fspath(place / f"{name}.sock")

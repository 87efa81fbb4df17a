"""The HTTP(S) proxy of a room without a network of its own.

The room's listening socket was made inside its network namespace and handed to this process, so the
proxy needs no address, no file and no process in the room; it ends with the room.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from urllib.parse import urlsplit

from .policy import Policy, RefusedError

MAX_HEAD = 64 * 1024
HEAD_SECONDS = 30.0
CHUNK = 64 * 1024
HOP_BY_HOP = ("proxy-", "connection:", "keep-alive:")


class Proxy:
    """Serves one room. Belongs to one event loop.

    Attributes
    ----------
    hosts
        ``host:port`` -> ``allowed`` or why it was refused or failed, in order of first use.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.hosts: dict[str, str] = {}

    async def start(self, listener: socket.socket) -> None:
        """Serve on a listening socket, which the proxy then owns."""
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=MAX_HEAD)

    def close(self) -> None:
        """Stop; connections end."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._relay(head, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # the room's side broke off, or never spoke HTTP
        finally:
            writer.close()

    async def _relay(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        request, *headers = head.decode("latin-1").split("\r\n")
        try:
            method, target, version = request.split(" ")
            host, port, path = destination(method, target)
        except ValueError:
            await answer(writer, 400, "This proxy understands CONNECT host:port and http:// requests.")
            return
        where = f"{host}:{port}"
        try:
            far_reader, far_writer = await self._policy.connect(host, port)
        except RefusedError as error:
            self.hosts[where] = f"refused: {error}"
            await answer(writer, 403, f"Refused by the sandbox's network policy: {error}.")
            return
        except OSError as error:
            self.hosts.setdefault(where, f"failed: {error}")
            await answer(writer, 502, f"{where} cannot be reached: {error}.")
            return
        self.hosts.setdefault(where, "allowed")
        try:
            if self._policy.upstream is not None:
                far_writer.write(head)
            elif method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                kept = [h for h in headers if h and not h.lower().startswith(HOP_BY_HOP)]
                lines = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
                far_writer.write("\r\n".join(lines).encode("latin-1"))
            async with asyncio.TaskGroup() as group:
                group.create_task(pump(reader, far_writer))
                group.create_task(pump(far_reader, writer))
        except* OSError:
            pass
        finally:
            far_writer.close()


def destination(method: str, target: str) -> tuple[str, int, str]:
    """Return host, port and path of a proxy request.

    Raises
    ------
    ValueError
        The target is neither ``host:port`` (CONNECT) nor an ``http://`` address.
    """
    if method == "CONNECT":
        parts = urlsplit(f"//{target}")
        if not parts.hostname or parts.port is None:
            raise ValueError(target)
        return parts.hostname, parts.port, ""
    parts = urlsplit(target)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(target)
    path = parts.path or "/"
    return parts.hostname, parts.port or 80, f"{path}?{parts.query}" if parts.query else path


async def answer(writer: asyncio.StreamWriter, code: int, text: str) -> None:
    """Send a plain-text answer."""
    body = f"{text}\n".encode()
    reason = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}[code]
    writer.write(
        f"HTTP/1.1 {code} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n".encode()
        + body
    )
    with contextlib.suppress(OSError):
        await writer.drain()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end, then close the other direction's end."""
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()

"""The HTTP(S) proxy of a room without a network of its own.

The room's listening socket was made inside its network namespace and handed to this process, so the
proxy needs no address, no file and no process in the room; it ends with the room.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from .policy import Policy, RefusedError, host_name

MAX_HEAD = 64 * 1024
HEAD_SECONDS = 30.0
CHUNK = 64 * 1024
MAX_CONNECTIONS = 64
"""At one time, for one room: they are descriptors of the kernel's process."""
MAX_HOSTS = 200
"""Different hosts that a step's record names."""
# RFC 9110 and 9112, without their leniencies: what stands in a line is read in one way only.
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(rf"({_NAME}) ([!-~]+) (HTTP/1\.[01])")
_HEADER = re.compile(rf"({_NAME}):([\t -~\x80-\xff]*)")
HOP_BY_HOP = ("proxy-", "connection:", "keep-alive:", "host:")


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
        if len(self._tasks) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._relay(head, reader, writer)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass  # the room's side broke off, or never spoke HTTP
        finally:
            writer.close()

    async def _relay(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            request = Request.parse(head)
        except (ValueError, RefusedError):
            await answer(
                writer, 400, "This proxy understands CONNECT host:port and http:// requests."
            )
            return
        where = f"{request.host}:{request.port}"
        try:
            far_reader, far_writer = await self._policy.connect(request.host, request.port)
        except RefusedError as error:
            self._note(where, f"refused: {error}")
            await answer(writer, 403, f"Refused by the sandbox's network policy: {error}.")
            return
        except OSError as error:
            self._note(where, f"failed: {error}")
            await answer(writer, 502, f"{where} cannot be reached: {error}.")
            return
        self._note(where, "allowed")
        try:
            upstream = self._policy.upstream is not None
            if request.method == "CONNECT" and upstream:
                far_writer.write(request.connect())
                refusal = await tunnel_refused(far_reader)
                if refusal:
                    await answer(writer, 502, f"The next proxy refused {where}: {refusal}.")
                    return
            if request.method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                far_writer.write(request.forward(absolute=upstream))
            # What follows one request could be another one, to another host.
            length = request.body if upstream else None
            async with asyncio.TaskGroup() as group:
                group.create_task(pump(reader, far_writer, length))
                group.create_task(pump(far_reader, writer))
        except* OSError:
            pass
        finally:
            far_writer.close()

    def _note(self, where: str, what: str) -> None:
        if where in self.hosts or len(self.hosts) < MAX_HOSTS:
            refused = what.startswith("refused")
            self.hosts[where] = what if refused else self.hosts.get(where, what)


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a proxy request, taken apart: it is never passed on as it came.

    Attributes
    ----------
    body
        Bytes that follow the head; -1: the sender says when it ends; None for a tunnel.
    """

    method: str
    host: str
    port: int
    path: str
    version: str
    headers: tuple[str, ...]
    body: int | None

    @classmethod
    def parse(cls, head: bytes) -> Request:
        """Read a head.

        Raises
        ------
        ValueError
            It is none, or could be read in more than one way.
        RefusedError
            The host is none.
        """
        first, *headers = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        method, target, version = _parts(_REQUEST_LINE, first)
        fields = [_parts(_HEADER, header) for header in headers]
        host, port, path = destination(method, target)
        body: int | None = None
        if method != "CONNECT":
            lengths = [
                value.strip(" \t") for name, value in fields if name.lower() == "content-length"
            ]
            if len(lengths) > 1 or not all(n.isascii() and n.isdigit() for n in lengths):
                raise ValueError("no length, or several")
            chunked = any(name.lower() == "transfer-encoding" for name, _value in fields)
            body = -1 if chunked else int(lengths[0]) if lengths else 0
        return cls(method, host, port, path, version, tuple(headers), body)

    @property
    def authority(self) -> str:
        """Host and port as they are written in a request."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def connect(self) -> bytes:
        """Return the request for a tunnel through the next proxy."""
        return f"CONNECT {self.authority} HTTP/1.1\r\nHost: {self.authority}\r\n\r\n".encode(
            "ascii"
        )

    def forward(self, *, absolute: bool) -> bytes:
        """Return the request for the server itself, or with an absolute address for the next proxy.

        Raises
        ------
        ConnectionAbortedError
            Its body has no length, so the next proxy could take a part of it for another request.
        """
        if absolute and self.body == -1:
            raise ConnectionAbortedError
        host = self.authority.removesuffix(":80")
        path = f"http://{self.authority}{self.path}" if absolute else self.path
        kept = [h for h in self.headers if not h.lower().startswith(HOP_BY_HOP)]
        lines = [
            f"{self.method} {path} {self.version}",
            f"Host: {host}",
            *kept,
            "Connection: close",
            "",
            "",
        ]
        return "\r\n".join(lines).encode("latin-1")


async def tunnel_refused(reader: asyncio.StreamReader) -> str:
    """Read the next proxy's answer to CONNECT; return its status line if it is no yes."""
    head = await reader.readuntil(b"\r\n\r\n")
    line = head.split(b"\r\n", 1)[0].decode("latin-1")
    code = line.split(" ")[1] if " " in line else ""
    return "" if code.startswith("2") else line[:200] or "no answer"


def destination(method: str, target: str) -> tuple[str, int, str]:
    """Return host, port and path of a proxy request.

    Raises
    ------
    ValueError
        The target is neither ``host:port`` (CONNECT) nor an ``http://`` address.
    RefusedError
        The host is none.
    """
    if method == "CONNECT":
        parts = urlsplit(f"//{target}")
        if not parts.hostname or parts.port is None:
            raise ValueError(target)
        return host_name(parts.hostname), parts.port, ""
    parts = urlsplit(target)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(target)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return host_name(parts.hostname), parts.port or 80, path


def _parts(pattern: re.Pattern[str], line: str) -> tuple[str, ...]:
    found = pattern.fullmatch(line)
    if found is None:
        raise ValueError(line)
    return found.groups()


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


async def pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None = None
) -> None:
    """Copy until the end, then close the other direction's end.

    Parameters
    ----------
    length
        Bytes to copy; the rest is read and dropped. None: all.
    """
    while data := await reader.read(CHUNK):
        if length is not None:
            data = data[:length]
            length -= len(data)
        if data:
            writer.write(data)
            await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()

"""Reads ``multipart/form-data`` piece by piece, so that no upload is held in memory.

Tornado parses a multipart body only when all of it has arrived. This reader takes the chunks as
they come and tells what it found; it knows nothing of HTTP or of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message

MAX_HEAD = 16 * 1024
"""Bytes the headers of one part may have."""


class MultipartError(ValueError):
    """The body is not what its content type says."""


@dataclass(frozen=True, slots=True)
class PartStart:
    """A part begins: its field name, and its file name if it is a file."""

    name: str
    filename: str | None


@dataclass(frozen=True, slots=True)
class PartData:
    """Some bytes of the part that began last."""

    data: bytes


@dataclass(frozen=True, slots=True)
class PartEnd:
    """The part that began last is complete."""


Event = PartStart | PartData | PartEnd


def boundary_of(content_type: str) -> bytes:
    """Return the boundary named in a ``Content-Type`` header.

    Raises
    ------
    MultipartError
        It is no ``multipart/form-data`` or has no usable boundary.
    """
    message = Message()
    message["Content-Type"] = content_type
    boundary = message.get_boundary()
    if message.get_content_type() != "multipart/form-data" or not boundary:
        raise MultipartError("the body must be multipart/form-data with a boundary")
    try:
        encoded = boundary.encode("ascii")
    except UnicodeEncodeError:
        raise MultipartError("the boundary is not ASCII") from None
    if len(encoded) > 70:  # RFC 2046
        raise MultipartError("the boundary is longer than 70 characters")
    return encoded


class MultipartReader:
    """Turns chunks of a body into events.

    Parameters
    ----------
    boundary
        From `boundary_of`.
    """

    def __init__(self, boundary: bytes) -> None:
        self._mark = b"\r\n--" + boundary
        # The first boundary may stand at the very start, without the line break that belongs to it.
        self._buffer = b"\r\n"
        self._state = "preamble"

    @property
    def complete(self) -> bool:
        """Whether the closing boundary has been seen."""
        return self._state == "end"

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Take the next bytes and yield what they complete.

        Raises
        ------
        MultipartError
            The body is malformed.
        """
        self._buffer += chunk
        while True:
            if self._state in ("preamble", "body"):
                found, event = self._to_boundary()
                if event is not None:
                    yield event
                if not found:
                    return
                if self._state == "body":
                    yield PartEnd()
                self._state = "boundary"
            elif self._state == "boundary":
                if not self._after_boundary():
                    return
            elif self._state == "head":
                start = self._head()
                if start is None:
                    return
                yield start
                self._state = "body"
            else:  # the epilogue has no meaning
                self._buffer = b""
                return

    def _to_boundary(self) -> tuple[bool, PartData | None]:
        """Consume up to the next boundary; keep back what may be the start of one."""
        position = self._buffer.find(self._mark)
        end = position if position >= 0 else max(0, len(self._buffer) - len(self._mark) + 1)
        data, rest = self._buffer[:end], self._buffer[end:]
        self._buffer = rest[len(self._mark) :] if position >= 0 else rest
        keep = self._state == "body" and data
        return position >= 0, PartData(data) if keep else None

    def _after_boundary(self) -> bool:
        """Decide whether a part or the end follows a boundary."""
        # White space may stand between the boundary and its line break.
        line = self._buffer.lstrip(b" \t")
        if len(line) < 2:
            if len(self._buffer) > MAX_HEAD:
                raise MultipartError("a boundary line is too long")
            return False
        if line.startswith(b"--"):
            self._state, self._buffer = "end", b""
        elif line.startswith(b"\r\n"):
            # The line break is kept: it ends an empty head, too.
            self._state, self._buffer = "head", line
        else:
            raise MultipartError("a boundary is not followed by a line break")
        return True

    def _head(self) -> PartStart | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise MultipartError("the headers of a part are too long")
            return None
        if end > MAX_HEAD:
            raise MultipartError("the headers of a part are too long")
        head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        # A body that is empty has its boundary's line break right after the head's.
        return _parse_head(head)


_PARAMETER = re.compile(rb';\s*(name|filename)="((?:[^"\\\r\n]|\\.)*)"', re.IGNORECASE)


def _parse_head(head: bytes) -> PartStart:
    disposition = b""
    for line in head.split(b"\r\n"):
        key, _, value = line.partition(b":")
        if key.strip().lower() == b"content-disposition":
            disposition = value.strip()
    if not disposition.lower().startswith(b"form-data"):
        raise MultipartError("a part has no form-data disposition")
    found = {key.lower(): value for key, value in _PARAMETER.findall(disposition)}
    name = _text(found.get(b"name", b""))
    filename = found.get(b"filename")
    return PartStart(name, None if filename is None else _text(filename))


def _text(value: bytes) -> str:
    """Undo the escapes of browsers (percent) and of older clients (backslash)."""
    for escaped, plain in ((b"%22", b'"'), (b"%0D", b"\r"), (b"%0A", b"\n"), (b'\\"', b'"')):
        value = value.replace(escaped, plain)
    return value.decode("utf-8", "surrogateescape")

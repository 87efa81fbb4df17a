"""Frames over sockets: the link's byte stream, and packets between our two processes.

The link is a stream: `FrameReader` cuts it. Supervisor and cell process talk in packets
(``SOCK_SEQPACKET``): one frame is one packet, sent by a single system call. So an interrupt that
strikes the cell in the middle of a print can tear no frame, and forked children of the cell may
send too without a lock. A frame too large for a packet travels in an anonymous file whose
descriptor is passed.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
from collections.abc import Iterator
from typing import Any

from .protocol import HEADER, ProtocolError, decode_head, decode_header, encode

INLINE = 48 * 1024
"""Largest packet sent as such, in bytes: well under the default socket buffer."""

PASSED = b"+"
"""The packet that accompanies a passed descriptor; no frame looks like it."""


class FrameReader:
    """Cut a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Take bytes; yield the frames that are complete.

        Raises
        ------
        ProtocolError
            The stream does not follow the protocol.
        """
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            head, body = decode_header(bytes(self._buffer[: HEADER.size]))
            middle, end = HEADER.size + head, HEADER.size + head + body
            if len(self._buffer) < end:
                return
            frame = bytes(self._buffer[HEADER.size : middle]), bytes(self._buffer[middle:end])
            del self._buffer[:end]
            yield decode_head(frame[0]), frame[1]


def send_packet(sock: socket.socket, head: dict[str, Any], body: bytes = b"") -> None:
    """Send one frame as one packet.

    Raises
    ------
    BlockingIOError
        The socket is non-blocking and full.
    OSError
        The other side is gone.
    """
    data = encode(head, body)
    if len(data) <= INLINE:
        sock.send(data)
        return
    file = _anonymous_file()
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        socket.send_fds(sock, [PASSED], [file])
    finally:
        os.close(file)


def _anonymous_file() -> int:
    """Make an anonymous file, also when the cell has used up its descriptors: some are spare."""
    try:
        return os.memfd_create("frame", os.MFD_CLOEXEC)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        return os.memfd_create("frame", os.MFD_CLOEXEC)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def receive_packet(
    sock: socket.socket, *, wait: bool = True
) -> tuple[dict[str, Any], bytes] | None:
    """Return the next frame, or None when the other side is gone.

    Raises
    ------
    BlockingIOError
        Nothing is there, and it shall not be waited for.
    ProtocolError
        The packet is no frame.
    """
    try:
        flags = 0 if wait else socket.MSG_DONTWAIT
        data, files, _flags, _address = socket.recv_fds(sock, INLINE + 4096, 1, flags)
    except ConnectionResetError:
        return None
    if not data:
        return None
    if data == PASSED and files:
        with open(files[0], "rb", buffering=0) as stream:
            data = _read_whole(stream.fileno())
    else:
        for file in files:
            os.close(file)
    if len(data) < HEADER.size:
        raise ProtocolError("a packet is shorter than its header")
    head, body = decode_header(data[: HEADER.size])
    middle = HEADER.size + head
    if len(data) != middle + body:
        raise ProtocolError("a packet is not as long as its header says")
    return decode_head(data[HEADER.size : middle]), data[middle:]


def _read_whole(file: int) -> bytes:
    """Read a passed file from its start, wherever its offset stands."""
    size = os.fstat(file).st_size
    chunks = []
    offset = 0
    while offset < size:
        chunk = os.pread(file, min(size - offset, 1 << 26), offset)
        if not chunk:
            break
        chunks.append(chunk)
        offset += len(chunk)
    return b"".join(chunks)

"""Connecting to the kernel's socket: by the runner, and on Dagger by the helper beside it."""

from __future__ import annotations

import socket
import time

CONNECT_SECONDS = 30.0


def dial(path: str) -> socket.socket:
    """Connect, as soon as somebody listens.

    Raises
    ------
    OSError
        Nobody answered within `CONNECT_SECONDS`.
    """
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(path)
        except OSError:
            sock.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return sock

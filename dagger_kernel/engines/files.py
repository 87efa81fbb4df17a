"""What every engine's look at the files of a state shares: path rules, reading in chunks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import BinaryIO

from ..errors import SandboxPathError

CHUNK = 1 << 20
"""Bytes read at a time."""


def split(path: str) -> tuple[str, ...]:
    """Return the components of a path relative to ``/home/sandbox``.

    Raises
    ------
    SandboxPathError
        It is absolute, has ``..`` or NUL, or a component is too long.
    """
    if path.startswith("/home/sandbox/") or path == "/home/sandbox":
        path = path[len("/home/sandbox") :].lstrip("/")
    if "\0" in path:
        raise SandboxPathError(path, "it has a NUL byte")
    if path.startswith("/"):
        raise SandboxPathError(path, "it is not below /home/sandbox")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise SandboxPathError(path, "it goes up with ..")
    if any(len(os.fsencode(part)) > 255 for part in parts):
        raise SandboxPathError(path, "a name in it is longer than 255 bytes")
    return parts


async def chunks(file: BinaryIO, offset: int, length: int | None) -> AsyncIterator[bytes]:
    """Read a part of a file (None: to its end), letting others run between the chunks."""
    file.seek(offset)
    left = length
    while left is None or left > 0:
        chunk = file.read(CHUNK if left is None else min(CHUNK, left))
        if not chunk:
            return
        left = None if left is None else left - len(chunk)
        yield chunk
        await asyncio.sleep(0)

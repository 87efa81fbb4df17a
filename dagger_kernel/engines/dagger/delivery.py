"""Files of an upload and stored layer differences, on their way through the link."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import BinaryIO

from ...errors import LinkError
from ..base import BlobSource, PutFile
from ..link import Link

CHUNK = 1 << 20


async def send_files(link: Link, files: Sequence[PutFile], blobs: BlobSource) -> None:
    """Send files; return when they are written.

    Raises
    ------
    BlobError
    LinkError
        The other side ended early.
    """
    for item in files:
        with await asyncio.to_thread(blobs.open, item.blob) as source:
            link.send({"type": "put", "path": item.path, "mode": item.mode})
            await _send_data(link, source)
    await _finish(link)


async def send_archive(link: Link, digest: str, blobs: BlobSource) -> None:
    """Send a layer difference; return when it is applied. Raises like `send_files`."""
    with await asyncio.to_thread(blobs.open, digest) as source:
        await _send_data(link, source)
    await _finish(link)


async def _send_data(link: Link, source: BinaryIO) -> None:
    while chunk := await asyncio.to_thread(source.read, CHUNK):
        link.send({"type": "data"}, chunk)
        await link.drain()


async def _finish(link: Link) -> None:
    link.send({"type": "end"})
    answer = await link.receive()
    if answer is None or answer[0]["type"] != "done":
        raise LinkError("The files did not arrive in the sandbox.")
    link.send({"type": "close"})  # as a runner, the helper exits only when its answer has arrived

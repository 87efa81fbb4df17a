"""Execs find their room by their nonce; strangers are turned away."""

from __future__ import annotations

import asyncio

from dagger_kernel.engines.dagger.server import LinkServer
from dagger_kernel.runner import protocol


async def visit(path, *frames):
    reader, writer = await asyncio.open_unix_connection(path)
    for frame in frames:
        writer.write(frame)
    return reader, writer


def hello(nonce):
    return protocol.encode({"type": "hello", "nonce": nonce})


async def test_two_rooms_on_one_socket_get_their_own_exec(tmp_path):
    server = LinkServer()
    await server.listen(tmp_path)
    came = asyncio.Queue()
    for nonce in ("one", "two"):
        server.expect(nonce, came.put_nowait)
    writers = [(await visit(server.path, hello(nonce)))[1] for nonce in ("two", "one")]
    visitors = [await asyncio.wait_for(came.get(), 5) for _ in range(2)]
    assert {visitor.nonce for visitor in visitors} == {"one", "two"}
    for visitor in visitors:
        visitor.link.close()
    for writer in writers:
        writer.close()
    await server.close()


async def test_who_is_not_expected_is_turned_away(tmp_path):
    server = LinkServer()
    await server.listen(tmp_path)
    server.expect("mine", lambda visitor: None)
    server.forget("mine")
    for frame in (
        hello("other"),
        hello("mine"),
        b"\0" * 8 + b"nonsense",
        protocol.encode({"type": "step"}),
        protocol.encode({"type": "hello", "nonce": "x" * 5000}),
        protocol.encode({"type": "hello", "nonce": "other"}, b"body"),
        (1 << 25).to_bytes(4, "big") + bytes(4),
    ):
        reader, writer = await visit(server.path, frame)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
    await server.close()
    assert not server.path.exists()


async def test_a_nonce_is_served_once(tmp_path):
    server = LinkServer()
    await server.listen(tmp_path)
    came = asyncio.Queue()
    server.expect("n", came.put_nowait)
    _, first = await visit(server.path, hello("n"))
    visitor = await asyncio.wait_for(came.get(), 5)
    reader, second = await visit(server.path, hello("n"))
    assert await asyncio.wait_for(reader.read(), 5) == b""
    visitor.link.close()
    first.close()
    second.close()
    await server.close()


async def test_nobody_else_may_connect(tmp_path):
    server = LinkServer()
    await server.listen(tmp_path)
    assert server.path.stat().st_mode & 0o777 == 0o600
    await server.close()


async def test_silent_strangers_are_few(tmp_path, monkeypatch):
    monkeypatch.setattr("dagger_kernel.engines.dagger.server.MAX_STRANGERS", 3)
    server = LinkServer()
    await server.listen(tmp_path)
    visitors = [await visit(server.path) for _ in range(5)]
    for reader, _ in visitors[3:]:
        assert await asyncio.wait_for(reader.read(), 5) == b""
    for _, writer in visitors:
        writer.close()
    await server.close()

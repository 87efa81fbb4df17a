"""Open sessions on the local engine, with a log of their own."""

from __future__ import annotations

import asyncio

import pytest

from dagger_kernel.sandbox import SandboxSession, run_source
from dagger_kernel.settings import Settings


class Opener:
    """Opens sessions on one data directory and closes them."""

    def __init__(self, data_dir):
        self.data_dir = data_dir
        self.sessions = []

    async def __call__(self, sandbox_id=None, notebook="", **settings):
        loaded = Settings.load(data_dir=str(self.data_dir), **settings)
        session = await SandboxSession.open(loaded, sandbox_id=sandbox_id, notebook=notebook)
        self.sessions.append(session)
        return session


class Listener:
    """Keeps what it hears; answers from a list."""

    def __init__(self, *answers):
        self.heads = []
        self.answers = list(answers)

    def event(self, head, body):
        self.heads.append(head)

    async def input(self, prompt, password):
        if not self.answers:
            raise EOFError("no more answers")
        return self.answers.pop(0)

    @property
    def text(self):
        return "".join(h["text"] for h in self.heads if h["type"] == "stream")

    @property
    def progress(self):
        return [h["text"] for h in self.heads if h["type"] == "progress"]


@pytest.fixture
async def opening(fresh_data_dir):
    opener = Opener(fresh_data_dir)
    yield opener
    for session in opener.sessions:
        await session.close()


@pytest.fixture
async def session(opening):
    return await opening()


async def text_of(session, source):
    """Run a cell and return what it printed."""
    listener = Listener()
    await run_source(session, source, listener)
    return listener.text


async def started(session, source, listener=None):
    """Start a cell; return its task once it has printed "go"."""
    listener = listener or Listener()
    running = asyncio.create_task(run_source(session, source, listener))
    while "go" not in listener.text:
        assert not running.done(), await running
        await asyncio.sleep(0.02)
    return running


async def interrupted(session, source, listener=None):
    """Run a cell, interrupt it once it has printed "go", and return how it ended."""
    running = await started(session, source, listener)
    await session.interrupt()
    return await running

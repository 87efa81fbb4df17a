"""Which sandbox a kernel process holds, and when it leaves it."""

import asyncio

import pytest

from dagger_kernel.kernel import holder as module
from dagger_kernel.kernel.holder import SessionHolder, notebook_of_this_kernel


class Session:
    made = 0

    def __init__(self, settings, sandbox_id, notebook):
        Session.made += 1
        self.settings, self.notebook = settings, notebook
        self.id = sandbox_id or f"new-{Session.made}"
        self.calls = []

    @classmethod
    async def open(cls, settings, *, sandbox_id=None, notebook="", kernel_name=""):
        await asyncio.sleep(0.01)
        return cls(settings, sandbox_id, notebook)

    def start_warming(self):
        self.calls.append("warm")

    async def end(self, *, restart):
        self.calls.append(f"end {restart}")

    async def close(self):
        await asyncio.sleep(0.01)
        self.calls.append("close")


@pytest.fixture(autouse=True)
def no_log(monkeypatch):
    monkeypatch.setattr(module, "SandboxSession", Session)


def holder_of(**environ):
    return SessionHolder("dagger", environ)


async def test_one_session_however_many_ask():
    holder = holder_of()
    first, *others = await asyncio.gather(*(holder.get() for _ in range(5)))
    assert all(other is first for other in others)


async def test_a_named_sandbox_is_continued_and_never_left():
    holder = holder_of(DAGGER_KERNEL_SANDBOX="abc", JPY_SESSION_NAME="/n.ipynb")
    session = await holder.get()
    assert session.id == "abc"
    await holder.end(restart=True)
    assert session.calls == ["close"]


async def test_a_notebooks_restart_leaves_its_sandbox():
    holder = holder_of(JPY_SESSION_NAME="/n.ipynb")
    session = await holder.get()
    assert session.notebook == "/n.ipynb"
    await holder.end(restart=True)
    assert session.calls == ["end True", "close"]


async def test_other_restarts_and_shutdowns_leave_nothing():
    for environ, restart in (({}, True), ({"JPY_SESSION_NAME": "/n.ipynb"}, False)):
        holder = holder_of(**environ)
        session = await holder.get()
        await holder.end(restart=restart)
        assert session.calls == ["close"]


async def test_ending_twice_waits_for_one_end():
    holder = holder_of()
    session = await holder.get()
    await asyncio.gather(holder.end(restart=False), holder.end(restart=False))
    assert session.calls == ["close"]


async def test_a_kernel_that_ran_nothing_still_leaves_on_restart():
    holder = holder_of(JPY_SESSION_NAME="/n.ipynb")
    await holder.end(restart=True)
    assert holder.current.calls == ["end True", "close"]


async def test_reset_begins_a_new_one_even_where_one_is_named():
    holder = holder_of(DAGGER_KERNEL_SANDBOX="abc")
    old = await holder.get()
    new = await holder.reset()
    assert old.calls == ["end True", "close"]
    assert new.id != "abc"
    assert holder.current is new


async def test_a_failure_is_not_remembered(monkeypatch):
    holder = holder_of(DAGGER_KERNEL_CPU_SECONDS="many")
    with pytest.raises(Exception, match="cpu_seconds"):
        await holder.get()
    holder._environ = {}
    assert await holder.get()


def test_the_notebook_is_the_one_the_server_started_this_kernel_for():
    environ = {"JPY_SESSION_NAME": "/a.ipynb"}
    assert notebook_of_this_kernel({}, {}) == ""
    assert notebook_of_this_kernel(environ, {}) == "/a.ipynb"
    # papermill inside a cell of another kernel: the name is inherited
    assert notebook_of_this_kernel(environ, environ) == ""
    assert notebook_of_this_kernel(environ, {"JPY_SESSION_NAME": "/b.ipynb"}) == "/a.ipynb"

"""Cgroups of rooms: found where they can be had, and what is killed in one is told as the memory limit."""

from __future__ import annotations

import os

import pytest

from dagger_kernel.engines.local import cgroups
from dagger_kernel.engines.local.cgroups import Cgroups
from dagger_kernel.runner import proc
from dagger_kernel.sandbox import SandboxSession, run_source
from dagger_kernel.settings import Settings


@pytest.fixture
def tree(tmp_path):
    """Something that looks like cgroup v2, in which nothing can be made."""
    mount, own = tmp_path / "mount", tmp_path / "own"
    (mount / "user/session").mkdir(parents=True)
    for directory, given in (("", "cpu memory"), ("user", "memory pids"), ("user/session", "")):
        (mount / directory / "cgroup.subtree_control").write_text(given)
    return mount, own


@pytest.mark.parametrize(
    "lines",
    ["", "4:memory:/user\n1:cpu:/user\n", "0::/../elsewhere\n", "0::/user/session\n", "0::/\n"],
    ids=["nothing", "version 1", "outside", "refused", "refused at the top"],
)
def test_where_none_can_be_made_there_are_none(tree, lines):
    mount, own = tree
    own.write_text(lines)
    assert Cgroups.find(mount, own).parent is None
    assert list(mount.rglob("dagger-kernel-*")) == []


def test_what_killed_kernels_left_is_removed(tree):
    mount, own = tree
    own.write_text("0::/user/session\n")
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
        nobody = int(file.read()) + 1
    stale, ours = (mount / f"user/dagger-kernel-{pid}-1" for pid in (nobody, os.getppid()))
    stale.mkdir()
    ours.mkdir()
    Cgroups.find(mount, own)
    assert not stale.exists()
    assert ours.exists()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n", 2),
        ("", 0),
        ("oom_kill 0\n", 0),
    ],
)
def test_kills_are_read_from_the_events(tmp_path, text, count):
    place = tmp_path / "memory.events"
    place.write_text(text)
    with place.open("rb") as file:
        assert proc.memory_kills(file.fileno()) == count
    assert proc.memory_kills(-1) == 0


@pytest.fixture
async def session(fresh_data_dir, monkeypatch):
    if cgroups.here().parent is None:
        pytest.skip("no cgroup v2 that this process may make cgroups in")
    # Lower than the limit that the runner keeps: only the operating system strikes here.
    monkeypatch.setattr(cgroups, "FACTOR", 0)
    monkeypatch.setattr(cgroups, "SLACK", 120 << 20)
    settings = Settings.load(
        data_dir=str(fresh_data_dir), memory_bytes=300 << 20, wall_seconds=200.0, cpu_seconds=200.0
    )
    session = await SandboxSession.open(settings)
    yield session
    await session.close()
    assert list(cgroups.here().parent.glob(f"dagger-kernel-{os.getpid()}-*")) == []


CHILD = (
    "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'bytearray(250 << 20)'])"
)


@pytest.mark.parametrize(
    ("source", "kept"),
    [("y = 2; b = bytearray(250 << 20)", "1 False"), (f"y = 2; {CHILD}", "1 True")],
    ids=["the cell", "a child"],
)
async def test_what_the_operating_system_kills_is_told(session, source, kept):
    await run_source(session, "x = 1")
    done = await run_source(session, source)
    assert (done.result.status, done.result.reason) == ("limit", "memory")
    assert "DAGGER_KERNEL_MEMORY_BYTES" in str(done.result.outputs)
    done = await run_source(session, "print(x, 'y' in globals())")
    assert kept in str(done.result.outputs)


async def test_it_is_told_to_a_fresh_interpreter_too(session):
    """A room whose distributions are others than the zygote's."""
    await run_source(session, "%pip uninstall --quiet --yes httpx")
    done = await run_source(session, CHILD)
    assert (done.result.status, done.result.reason) == ("limit", "memory")


async def test_each_engine_of_a_process_has_its_own(session):
    await run_source(session, "x = 1")
    other = await SandboxSession.open(session.settings)
    try:
        done = await run_source(other, CHILD)
        assert (done.result.status, done.result.reason) == ("limit", "memory")
    finally:
        await other.close()

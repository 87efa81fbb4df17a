"""Uploads, rewinds and forks are steps like any other."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagger_kernel.errors import SandboxPathError, StepNotFoundError
from dagger_kernel.log import open_log
from dagger_kernel.sandbox import fork, run_source
from dagger_kernel.sandbox.attachments import Attachments
from dagger_kernel.sandbox.names import safe_name, safe_path

from .conftest import text_of


async def test_uploads_are_there_in_the_next_cell(session):
    done = await session.upload(
        [("q3 sign-ups.csv", b"a\n1\n"), ("../../etc/passwd", io.BytesIO(b"x"))]
    )
    assert done.paths["q3 sign-ups.csv"] == "attachments/q3 sign-ups.csv"
    assert done.paths["../../etc/passwd"] == "attachments/passwd"
    listing = await text_of(session, "import os; print(sorted(os.listdir('attachments')))")
    assert listing == "['passwd', 'q3 sign-ups.csv']\n"
    assert [step.kind for step, _ in await session.steps()] == ["upload", "cell"]


async def test_the_same_name_gets_a_readable_unique_one(session):
    for content in (b"1", b"2", b"3"):
        done = await session.upload([("data.tar.gz", content)])
    assert done.paths == {"data.tar.gz": "attachments/data.tar (3).gz"}
    assert await text_of(session, "print(open('attachments/data.tar (3).gz').read())") == "3\n"


async def test_too_large_files_are_skipped_and_named(opening):
    session = await opening(file_bytes=10)
    done = await session.upload([("big", b"x" * 11), ("exact", b"x" * 10)])
    assert list(done.paths) == ["exact"]
    assert "DAGGER_KERNEL_FILE_BYTES" in done.skipped["big"]


async def test_a_rewind_continues_from_an_earlier_step(session):
    await run_source(session, "x = 1; open('f', 'w').write('one')")
    await run_source(session, "x = 2; open('f', 'w').write('two')")
    await session.rewind(1)
    assert await text_of(session, "print(x, open('f').read())") == "1 one\n"
    await session.rewind(0)
    assert (
        await text_of(session, "import os; print('x' in globals(), os.path.exists('f'))")
        == "False False\n"
    )
    await session.rewind(2)
    assert await text_of(session, "print(x)") == "2\n"
    with pytest.raises(StepNotFoundError):
        await session.rewind(99)


async def test_a_fork_leaves_its_origin_alone(opening):
    origin = await opening()
    await run_source(origin, "xs = [1]")
    await run_source(origin, "xs.append(2)")
    log = open_log(origin.settings)
    made, early = fork(log, origin.id), fork(log, origin.id, 1)
    log.close()
    branch, early_branch = await opening(made.id), await opening(early.id)
    assert await text_of(branch, "xs.append('branch'); print(xs)") == "[1, 2, 'branch']\n"
    assert await text_of(early_branch, "print(xs)") == "[1]\n"
    assert await text_of(origin, "print(xs)") == "[1, 2]\n"


async def test_files_of_the_tip_can_be_listed_and_downloaded(session):
    await run_source(
        session, "import os; os.mkdir('out'); open('out/ü.bin', 'wb').write(b'\\0\\xff')"
    )
    assert [f.path for f in await session.files("out")] == ["out/ü.bin"]
    assert await session.download("out/ü.bin") == b"\0\xff"


@given(st.text(max_size=400))
def test_any_name_becomes_a_safe_one_or_is_refused(name):
    try:
        clean = safe_name(name)
    except SandboxPathError:
        return
    assert clean not in ("", ".", "..")
    assert "/" not in clean
    assert "\0" not in clean
    assert len(clean.encode("utf-8")) <= 200
    assert safe_name(clean) == clean


@given(st.text(max_size=400))
def test_a_path_with_folders_stays_inside(name):
    try:
        path = safe_path(name)
    except SandboxPathError:
        return
    assert not path.startswith("/")
    assert not {"", ".", ".."} & set(path.split("/"))


@given(st.lists(st.sampled_from(["a.txt", "a", ".hidden", "a (2).txt", "x.tar.gz"]), max_size=8))
def test_unique_names_are_unique(names):
    there, taken = Attachments(), set()
    for number, name in enumerate(names):
        path = there.free(f"attachments/{name}")
        assert path not in taken
        taken.add(path)
        there.take({"path": path, "blob": str(number)})

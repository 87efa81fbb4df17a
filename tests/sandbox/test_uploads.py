"""Uploads: what they cost, what is there already, what follows a rewind."""

import asyncio
from itertools import pairwise

import pytest

from dagger_kernel.log import open_log, reader
from dagger_kernel.sandbox import Attachments, Given, Sandbox, rewind, upload_files
from dagger_kernel.sandbox.ahead import SETTLE_SECONDS, Ahead
from dagger_kernel.settings import Settings

from .conftest import text_of


@pytest.fixture
def log(tmp_path):
    log = open_log(Settings.load(data_dir=str(tmp_path)))
    yield log
    log.close()


@pytest.fixture
def put(log):
    """Upload to one sandbox, knowing what was uploaded before."""
    sandbox, known = log.create_sandbox("someone"), Attachments()

    def put(*files, **options):
        given = [file if isinstance(file, Given) else Given(*file) for file in files]
        options = {"attachments": known, "reuse_equal": True} | options
        return upload_files(log, sandbox.id, given, Settings(), **options)

    put.sandbox = sandbox.id
    return put


@pytest.fixture
def steps_read(monkeypatch):
    """Count the steps that are read from the log."""
    read = []

    def counted(row):
        step = original(row)
        read.append(step.seq)
        return step

    original = reader.read_step
    monkeypatch.setattr(reader, "read_step", counted)
    return read


def test_what_an_upload_reads_does_not_grow_with_the_log(put, steps_read):
    def cost(number):
        steps_read.clear()
        put((f"{number}.csv", str(number).encode()))
        return len(steps_read)

    costs = [cost(number) for number in range(300)]
    assert max(costs[10:]) <= max(costs[:10])
    assert max(costs) <= 8


def test_one_name_for_the_thousandth_time_costs_as_much_as_for_the_second():
    there = Attachments()
    looked = 0

    class Counted(dict):
        def __contains__(self, key):
            nonlocal looked
            looked += 1
            return super().__contains__(key)

    there._blobs = Counted()
    for number in range(1000):
        there.take({"path": there.free("attachments/a.csv"), "blob": str(number)})
    assert looked < 5000
    assert there.free("attachments/a.csv") == "attachments/a (1001).csv"


async def test_a_session_reads_new_steps_only_when_somebody_else_appends(opening, steps_read):
    session = await opening()
    await text_of(session, "x = 0")
    log, known = open_log(session.settings), Attachments()

    async def cost(number):
        upload_files(
            log, session.id, [Given(f"{number}.csv", b"x")], session.settings, attachments=known
        )
        steps_read.clear()
        await session._tip.refresh()
        return len(steps_read)

    costs = [await cost(number) for number in range(100)]
    log.close()
    assert max(costs[10:]) <= max(costs[:10])
    assert await text_of(session, "import os; print(len(os.listdir('attachments')))") == "100\n"


def test_equal_files_are_there_already_whatever_place_they_got(put):
    assert put(("a.png", b"1"), ("a.png", b"2")).placed == [
        ("a.png", "attachments/a.png"), ("a.png", "attachments/a (2).png"),
    ]  # fmt: skip
    again = put(("a.png", b"2"), ("a.png", b"1"))
    assert again.step is None
    assert [path for _, path in again.placed] == ["attachments/a (2).png", "attachments/a.png"]


def test_a_later_version_of_the_same_origin_takes_the_place(put):
    put(("a.csv", b"somebody else's"))
    first = put(Given("a.csv", b"1", "folder"))
    assert first.paths == {"a.csv": "attachments/a (2).csv"}
    assert put(Given("a.csv", b"2", "folder")).paths == {"a.csv": "attachments/a (2).csv"}
    # Back to the first bytes is a version too, not one that is there already.
    assert put(Given("a.csv", b"1", "folder")).step is not None
    assert put(Given("a.csv", b"1", "folder")).step is None


@pytest.mark.parametrize("fresh", [False, True])
def test_what_a_rewind_left_behind_is_not_there(put, log, fresh):
    put(("a.csv", b"1"))
    put(("b.csv", b"2"))
    rewind(log, put.sandbox, 1)
    options = {"attachments": Attachments()} if fresh else {}
    assert put(("a.csv", b"1"), **options).step is None
    assert put(("b.csv", b"2"), **options).paths == {"b.csv": "attachments/b.csv"}
    rewind(log, put.sandbox, 2)
    assert put(("b.csv", b"2"), **options).step is None
    rewind(log, put.sandbox, 0)
    assert put(("a.csv", b"1"), **options).step is not None


def test_a_failed_upload_is_not_believed_to_be_there(put, log, monkeypatch):
    put(("a.csv", b"1"))
    with monkeypatch.context() as patch, pytest.raises(OSError, match="gone"):
        patch.setattr(log, "append", lambda _step: (_ for _ in ()).throw(OSError("gone")))
        put(("b.csv", b"2"))
    assert put(("b.csv", b"2")).step is not None


class Endless:
    """A stream that gives no end."""

    given = 0

    def read(self, size):
        self.given += size
        return b"x" * size


def test_a_stream_past_the_limit_is_left_there(put):
    stream = Endless()
    done = put(("endless", stream), ("fine", b"x"))
    assert "DAGGER_KERNEL_FILE_BYTES" in done.skipped["endless"]
    assert list(done.paths) == ["fine"]
    assert stream.given <= Settings().file_bytes + 1


def test_several_files_from_python_are_one_step(fresh_data_dir, tmp_path):
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(range(256)) * (16 << 12))
    with Sandbox(data_dir=str(fresh_data_dir)) as sandbox, large.open("rb") as stream:
        paths = sandbox.upload_many({"a.csv": b"1", "large.bin": stream})
        assert paths == {"a.csv": "attachments/a.csv", "large.bin": "attachments/large.bin"}
        done = sandbox.run("import os; print(os.path.getsize('attachments/large.bin'))")
        assert done.logs.stdout == [f"{16 << 20}\n"]
        assert done.step == 2
        assert sandbox.download("attachments/large.bin") == large.read_bytes()
        with pytest.raises(ValueError, match="'..': .* no file name"):
            sandbox.upload_many({"b.csv": b"1", "..": b"x"})
        assert sandbox.download("attachments/b.csv") == b"1"


async def test_what_is_done_soon_is_done_once_and_can_be_settled():
    done = []

    async def work():
        done.append(len(done))
        if len(done) < 3:
            ahead.soon()
        return True

    ahead = Ahead(work)
    for _ in range(5):
        ahead.soon()
    await asyncio.sleep(1.5 * SETTLE_SECONDS)
    assert done == [0]
    await ahead.settle()
    await asyncio.sleep(1.5 * SETTLE_SECONDS)
    assert done == [0]
    ahead.soon()
    async with asyncio.timeout(20):
        while len(done) < 3:
            await asyncio.sleep(0.05)


async def test_what_cannot_be_done_yet_is_tried_again_with_longer_pauses(monkeypatch):
    monkeypatch.setattr("dagger_kernel.sandbox.ahead.PATIENCE_SECONDS", 1.0)
    clock, tries = asyncio.get_running_loop().time, []

    async def work():
        tries.append(clock())
        return False

    ahead = Ahead(work)
    for _ in range(2):
        tries.clear()
        ahead.soon()
        await asyncio.sleep(12 * SETTLE_SECONDS)
        pauses = [after - before for before, after in pairwise(tries)]
        assert len(pauses) == 2
        assert pauses[0] >= 2 * SETTLE_SECONDS * 0.9
        assert pauses[1] >= 4 * SETTLE_SECONDS * 0.9
    await ahead.settle()

"""Pages of SQLite's file overwritten: it is told, nothing else is lost, `check` says what to do; and clocks that jump."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from dagger_kernel.cli import main
from dagger_kernel.errors import DaggerKernelError, LogError, LogIntegrityError
from dagger_kernel.log import open_log
from dagger_kernel.log.rows import stamp

from .helpers import SQLITE, make_step, run_cell, run_cells

PAGE = 4096


def filled(log):
    """Return sandboxes with enough steps to take many pages, and what they hold."""
    sandboxes = [log.create_sandbox("ada", f"{number}.ipynb") for number in range(6)]
    for sandbox in sandboxes:
        run_cells(log, sandbox, 25)
    return {row.id: [(s.source, r.outputs) for s, r in log.steps(row.id)] for row in sandboxes}


def overwrite(file, pages, dice):
    with file.open("r+b") as stream:
        for page in pages:
            stream.seek(page * PAGE)
            stream.write(dice.choice([bytes(PAGE), dice.randbytes(PAGE), b"\xff" * PAGE]))


@SQLITE
@pytest.mark.parametrize("seed", range(12))
def test_overwritten_pages_are_told_and_cost_only_what_was_on_them(log, settings, seed):
    dice = random.Random(seed)
    before = filled(log)
    log.close()
    file = Path(settings.data_dir) / "log.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    pages = file.stat().st_size // PAGE
    # The first page is the file's head: the next test.
    overwrite(file, dice.sample(range(1, pages), dice.choice([1, 2, 5])), dice)
    problems, read, failed = [], 0, 0
    try:
        store = open_log(settings)
    except LogError as error:
        assert "check" in str(error) or "backup" in str(error) or "damaged" in str(error)
        return
    try:
        problems = store.verify()
        for identity, steps in before.items():
            try:
                now = [(s.source, r.outputs if r else None) for s, r in store.steps(identity)]
            except DaggerKernelError as error:
                failed += 1
                assert "Traceback" not in str(error)
                continue
            read += 1
            # What can be read is what was written: never another value without a word.
            if now != steps:
                assert problems, "altered, and nobody says so"
    finally:
        store.close()
    assert problems or (read == len(before) and not failed)


@SQLITE
@pytest.mark.parametrize("content", [bytes(PAGE), b"not a database at all" * 200, b""])
def test_a_file_without_a_head_is_told(log, settings, content):
    filled(log)
    log.close()
    file = Path(settings.data_dir) / "log.sqlite"
    for extra in ("-wal", "-shm"):
        file.with_name(file.name + extra).unlink(missing_ok=True)
    rest = file.read_bytes()[PAGE:]
    file.write_bytes(content[:PAGE].ljust(PAGE, b"\0") + rest)
    with pytest.raises(LogIntegrityError) as caught:
        open_log(settings)
    assert "backup" in str(caught.value)
    assert file.read_bytes()[PAGE:] == rest  # nothing is written over it


@SQLITE
def test_check_says_what_to_do(log, settings, monkeypatch, capsys):
    filled(log)
    log.close()
    file = Path(settings.data_dir) / "log.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    dice = random.Random(1)
    overwrite(file, range(20, 24), dice)
    monkeypatch.setenv("DAGGER_KERNEL_DATA_DIR", settings.data_dir)
    with pytest.raises(SystemExit) as ended:
        main(["check"])
    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert "restore it from a backup" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("years", [-20, 20])
def test_a_clock_that_jumps_changes_no_order_and_loses_nothing(log, sandbox, years, monkeypatch):
    from datetime import UTC, datetime, timedelta

    from dagger_kernel.log import heads, registry

    first = run_cell(log, sandbox)
    other = log.create_sandbox(sandbox.owner, sandbox.notebook)
    moved = stamp(datetime.now(UTC) + timedelta(days=365 * years))
    monkeypatch.setattr(heads, "now", lambda: moved)
    monkeypatch.setattr(registry, "now", lambda: moved)
    when = datetime.now(UTC) + timedelta(days=365 * years)
    step = log.append(make_step(sandbox, first, created=when))
    assert log.tip(sandbox.id).id == first.id  # it has no result yet
    log.start_session(sandbox.id)
    log.end_sandbox(other.id)
    monkeypatch.undo()
    last = run_cell(log, sandbox, first)
    assert [s.seq for s, _ in log.steps(sandbox.id)] == [1, 2, 3]
    assert log.tip(sandbox.id).id == last.id
    assert [s.id for s, _ in log.steps(sandbox.id)] == [first.id, step.id, last.id]
    assert log.latest_sandbox(sandbox.owner, sandbox.notebook).id == sandbox.id
    assert log.verify() == []

"""Whoever gets around the triggers is found by the hash chain."""

import pytest

from dagger_kernel.errors import LogIntegrityError
from dagger_kernel.log import open_log
from dagger_kernel.steps import Kind

from .helpers import SQLITE, make_file, make_result, make_step, run_cell

TABLES = ["sandbox", "head", "step", "result", "event", "artifact"]

TAMPERED = [
    ("UPDATE step SET source = '\"rm\"' WHERE seq = 2", "step at entry 4 was altered"),
    ("UPDATE step SET created = '2001' WHERE seq = 2", "step at entry 4 was altered"),
    ("UPDATE step SET parent_id = NULL WHERE seq = 2", "step at entry 4 was altered"),
    ("UPDATE step SET session = 9 WHERE seq = 2", "step at entry 4 was altered"),
    ("UPDATE step SET hash = previous WHERE seq = 2", "step at entry 4 was altered"),
    ("UPDATE result SET status = 'error' WHERE entry = 2", "result at entry 2 was altered"),
    ("UPDATE result SET files = '[]' WHERE entry = 2", "result at entry 2 was altered"),
    ("UPDATE result SET outputs = '[]' WHERE entry = 2", "has altered outputs"),
    ("UPDATE result SET outputs = NULL WHERE entry = 2", "its outputs: A stored file is missing"),
    ("DELETE FROM result WHERE entry = 5", "1 rows before entry 6 are missing"),
    ("DELETE FROM event", "1 rows before entry 4 are missing"),
    ("DELETE FROM artifact", "has altered artifacts"),
    ("UPDATE artifact SET mode = 511", "has altered artifacts"),
    ("UPDATE artifact SET path = '\"b.txt\"'", "has altered artifacts"),
    ("INSERT INTO artifact SELECT step_id, role, 9, sandbox_id, path, blob, size, mime, mode FROM artifact",
     "has altered artifacts"),
    ("UPDATE sandbox SET owner = '\"eve\"'", "first row was altered"),
    ("UPDATE sandbox SET parent_step = 'x'", "first row was altered"),
    ("UPDATE head SET entry = 8, seq = 9", "the last 1 rows are missing"),
    ("UPDATE head SET entry = 6", "there are rows after its head"),
    ("UPDATE head SET hash = 'x'", "its head does not name its newest row"),
    ("DELETE FROM head", "its first row is missing"),
    ("UPDATE step SET seq = 7 WHERE seq = 3", "step 7 stands where step 3 belongs"),
    ("UPDATE step SET previous = hash WHERE seq = 3", "does not continue the entry before it"),
]  # fmt: skip


@pytest.fixture
def filled(log, sandbox):
    """Entries: step, result with a file, event, step, result, step, result."""
    step = log.append(make_step(sandbox, payload={"session": 1, "execution_count": 1}))
    log.finish(make_result(step, files=[make_file(log, "a.txt", b"a")]))
    log.end_sandbox(sandbox.id)
    run_cell(log, sandbox, step, payload={"session": 1, "execution_count": 2})
    run_cell(log, sandbox, step)
    assert log.verify() == []
    return sandbox


@pytest.fixture
def tamper(raw, backend):
    """Execute SQL past triggers and foreign keys."""
    if backend == "sqlite":
        for (name,) in raw("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            raw(f"DROP TRIGGER {name}")
        return raw

    def execute(statement):
        # As a replica's applier: PostgreSQL then runs no trigger, not even those of foreign keys.
        return raw(f"SET session_replication_role = replica; {statement}")

    return execute


@pytest.mark.parametrize(("statement", "found"), TAMPERED)
def test_tampering_is_found(filled, log, tamper, statement, found):
    other = log.create_sandbox("bob")
    run_cell(log, other)
    tamper(statement)
    problems = log.verify()
    assert any(found in problem for problem in problems), problems
    assert log.verify(filled.id)
    if statement.startswith("UPDATE step SET source"):
        # One change, one message; and the rest of the log is still vouched for.
        assert len(problems) == 1
        assert problems[0].startswith(f"Sandbox {filled.id}: ")
        assert log.verify(other.id) == []


def test_a_removed_middle_is_found_even_when_the_rest_is_renumbered(filled, log, tamper):
    tamper("DELETE FROM event")
    for table in ("step", "result"):
        for entry in (4, 5, 6, 7):
            tamper(f"UPDATE {table} SET entry = {entry - 1} WHERE entry = {entry}")
    tamper("UPDATE head SET entry = entry - 1")
    assert len(log.verify()) >= 4


def test_a_damaged_blob_is_found(filled, log):
    (artifact,) = log.artifacts(filled.id)
    path = log.blobs.root / artifact.blob[:2] / artifact.blob[2:4] / artifact.blob
    path.write_bytes(b"b")
    (problem,) = log.verify()
    assert "its file 'a.txt': A stored file is damaged" in problem
    assert log.verify(read_blobs=False) == []
    path.unlink()
    assert len(log.verify(read_blobs=False)) == 1
    assert log.blobs.put(b"a") == artifact.blob
    assert log.verify() == []


def test_uploads_are_checked(sandbox, log, tamper):
    blob = log.blobs.put(b"x")
    files = [{"path": "x.txt", "blob": blob, "size": 1}]
    log.append(make_step(sandbox, kind=Kind.UPLOAD, payload={"files": files}))
    assert log.verify() == []
    log.blobs.delete(blob)
    assert len(log.verify()) == 1


@SQLITE
def test_a_damaged_database_file_is_found(filled, settings, log):
    for number in range(30):
        run_cell(log, filled, source=f"# {number}" + "x" * 3000)
    log.close()
    path = settings.data_path / "log.sqlite"
    data = bytearray(path.read_bytes())
    for page in range(len(data) // 4096 - 20, len(data) // 4096 - 2, 3):
        data[page * 4096 : page * 4096 + 2000] = b"\xa5" * 2000
    path.write_bytes(data)
    damaged = open_log(settings)
    try:
        problems = damaged.verify()
        assert any("damaged" in problem for problem in problems), problems
        with pytest.raises(LogIntegrityError):
            for _ in damaged.steps(filled.id):
                pass
    finally:
        damaged.close()


@SQLITE
def test_a_file_that_is_no_database_is_told_as_such(settings):
    (settings.data_path / "log.sqlite").write_bytes(b"not a database" * 1000)
    with pytest.raises(LogIntegrityError, match="damaged"):
        open_log(settings)

import os

import pytest

from dagger_kernel.errors import LogError, SandboxNotFoundError, StepNotFoundError
from dagger_kernel.steps import Kind

from .helpers import make_file, make_result, make_step, run_cell

SECRET = "hunter2-the-secret"


@pytest.fixture
def filled(log, sandbox):
    step = run_cell(log, sandbox, source=SECRET)
    second = log.append(make_step(sandbox, step))
    files = [make_file(log, "own.txt", b"own"), make_file(log, "common.txt", b"common")]
    layer = log.blobs.put(b"layer")
    log.finish(make_result(second, files=files, layer=layer, outputs=[{"text": "x" * 70_000}]))
    return sandbox


def blobs(log):
    return {digest for digest, _ in log.blobs.digests()}


def test_a_purge_leaves_a_tombstone_and_nothing_else(log, filled, raw, settings, backend):
    other = log.create_sandbox("bob")
    step = log.append(make_step(other))
    log.finish(make_result(step, files=[make_file(log, "common.txt", b"common")]))
    log.purge_sandbox(filled.id, by="admin")
    log.purge_sandbox(filled.id, by="admin")  # told twice, done once
    assert log.sandbox(filled.id).state == "purged"
    assert [one.id for one in log.sandboxes()] == [other.id]
    assert log.steps(filled.id) == []
    assert log.artifacts(filled.id) == []
    assert log.history("owner") == []
    assert blobs(log) == {log.blobs.put(b"common")}
    assert log.verify() == []
    for table, count in {"step": 1, "result": 1, "artifact": 1, "blob": 1, "event": 1}.items():
        assert raw(f"SELECT count(*) FROM {table}") == [(count,)]
    ((note,),) = raw("SELECT payload FROM event WHERE kind = 'purge'")
    assert note == '{"by":"admin","steps":2}'
    if backend == "sqlite":
        log.close()
        for path in settings.data_path.glob("log.sqlite*"):
            assert SECRET.encode() not in path.read_bytes()


def test_a_purged_sandbox_takes_no_more_steps(log, filled):
    log.purge_sandbox(filled.id)
    with pytest.raises(LogError, match="purged"):
        log.append(make_step(filled))
    with pytest.raises(LogError, match="purged"):
        log.end_sandbox(filled.id)
    assert log.tip(filled.id) is None
    assert log.latest_sandbox("owner", "notebook.ipynb") is None
    with pytest.raises(SandboxNotFoundError):
        log.purge_sandbox("0" * 32)


def test_a_result_that_comes_after_the_purge_is_refused(log, filled):
    step = log.append(make_step(filled))
    log.purge_sandbox(filled.id)
    with pytest.raises(StepNotFoundError):
        log.finish(make_result(step))
    assert log.verify() == []


def test_forks_are_purged_first(log, filled):
    (first, _), (second, _) = log.steps(filled.id)
    fork = log.create_sandbox("bob", parent_step=first.id)
    elsewhere = log.create_sandbox("eve")
    log.append(make_step(elsewhere, kind=Kind.REWIND, payload={"to": second.id}))
    with pytest.raises(LogError) as caught:
        log.purge_sandbox(filled.id)
    assert fork.id in str(caught.value)
    assert elsewhere.id in str(caught.value)
    assert len(log.steps(filled.id)) == 2
    log.purge_sandbox(fork.id)
    log.purge_sandbox(elsewhere.id)
    log.purge_sandbox(filled.id)
    assert log.verify() == []


def test_a_tombstone_is_needed_and_cannot_be_taken_away(log, filled, raw):
    import sqlite3

    import psycopg

    with pytest.raises((sqlite3.Error, psycopg.Error)):
        raw("DELETE FROM step")
    log.purge_sandbox(filled.id)
    for statement in ("DELETE FROM event", "UPDATE event SET kind = 'end'", "DELETE FROM sandbox"):
        with pytest.raises((sqlite3.Error, psycopg.Error)):
            raw(statement)
    raw("INSERT INTO blob VALUES ('d', 1, 'x')")


def test_blobs_that_nothing_refers_to_are_collected(log, filled):
    kept = blobs(log)
    orphan, recipe = log.blobs.put(b"orphan"), log.blobs.put(b"recipe")
    assert log.collect_blobs().blobs == 0  # too young
    for digest in [*kept, orphan, recipe]:
        os.utime(log.blobs._path(digest), (1, 1))
    collected = log.collect_blobs(keep=[recipe])
    assert (collected.blobs, collected.size) == (1, 6)
    assert blobs(log) == kept | {recipe}
    assert log.verify() == []
    upload = log.blobs.put(b"upload")
    files = [{"path": "u", "blob": upload, "size": 6}]
    log.append(make_step(filled, kind=Kind.UPLOAD, payload={"files": files}))
    assert log.collect_blobs(older_than=-60).blobs == 1
    assert blobs(log) == kept | {upload}

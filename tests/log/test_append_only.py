"""Nobody who only has the database can change what was logged: triggers refuse it."""

import sqlite3

import psycopg
import pytest

from .helpers import make_file, make_result, make_step

REFUSED = (sqlite3.IntegrityError, psycopg.Error)
TABLES = ["sandbox", "step", "result", "event", "artifact", "kernel_session"]


@pytest.fixture
def filled(log, sandbox):
    step = log.append(make_step(sandbox))
    log.finish(make_result(step, files=[make_file(log, "a.txt", b"a")]))
    log.start_session(sandbox.id)
    log.end_sandbox(sandbox.id)
    return step


def refused(raw, statement, *parameters):
    with pytest.raises(REFUSED) as caught:
        raw(statement, *parameters)
    assert "append-only" in str(caught.value) or "only moves forward" in str(caught.value)


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_neither_changed_nor_deleted(log, filled, raw, table):
    columns = {"kernel_session": "started", "artifact": "path", "step": "source", "result": "usage"}
    column = columns.get(table, "created")
    refused(raw, f"UPDATE {table} SET {column} = 'x'")
    refused(raw, f"UPDATE {table} SET {column} = {column}")
    refused(raw, f"DELETE FROM {table}")
    assert raw(f"SELECT count(*) FROM {table}") == [(1,)]
    assert log.verify() == []


@pytest.mark.parametrize("table", [*TABLES, "head"])
def test_a_row_is_not_replaced(log, filled, raw, backend, table):
    if backend == "sqlite":
        refused(raw, f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
        refused(raw, f"REPLACE INTO {table} SELECT * FROM {table}")
    else:
        key = {"sandbox": "id", "step": "id", "result": "step_id", "head": "sandbox_id"}
        keys = {"event": "sandbox_id, entry", "artifact": "step_id, role, number"}
        names = key.get(table) or keys.get(table) or "owner, number"
        target = {"head": "hash", "artifact": "path", "kernel_session": "started"}.get(
            table, "hash"
        )
        refused(
            raw,
            f"INSERT INTO {table} SELECT * FROM {table} "
            f"ON CONFLICT ({names}) DO UPDATE SET {target} = 'x'",
        )
        refused(raw, f"TRUNCATE {table} CASCADE")
    assert log.verify() == []


def test_a_second_row_of_the_same_place_is_refused(filled, raw, backend):
    # Same seq in the same sandbox under another id: what a forger would insert.
    columns = [
        "id", "sandbox_id", "seq", "kind", "language", "source", "payload", "limits", "nonce",
        "base_digest", "runner_digest", "engine", "key", "created", "entry", "previous", "hash",
    ]  # fmt: skip
    copied = ", ".join(["'forged'", *columns[1:]])
    insert = "INSERT OR REPLACE" if backend == "sqlite" else "INSERT"
    with pytest.raises(REFUSED):
        raw(f"{insert} INTO step ({', '.join(columns)}) SELECT {copied} FROM step")


def test_the_head_only_moves_forward(log, filled, raw):
    refused(raw, "DELETE FROM head")
    refused(raw, "UPDATE head SET entry = entry - 1")
    refused(raw, "UPDATE head SET entry = entry + 2")
    refused(raw, "UPDATE head SET hash = 'x'")
    refused(raw, "UPDATE head SET entry = entry + 1, seq = seq - 1")
    refused(raw, "UPDATE head SET entry = entry + 1, sandbox_id = 'other'")
    assert log.verify() == []

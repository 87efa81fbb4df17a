"""Who did what when, on both databases."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from dagger_kernel.steps import Kind

from .helpers import make_file, make_result, make_step, run_cell


def records(log, **narrowed):
    found = []
    log.audit(found.append, **narrowed)
    return found


def events(found):
    return [(item["event"], item.get("step")) for item in found]


def test_everything_that_was_done_is_there_in_order(log, sandbox):
    log.start_session(sandbox.id)
    cell = run_cell(log, sandbox, source="import os\n\0\ud800", payload={"secrets": ["KEY"]})
    files = [{"path": "attachments/a.csv", "blob": log.blobs.put(b"a"), "size": 1, "mode": 0o644}]
    upload = log.append(make_step(sandbox, cell, Kind.UPLOAD, payload={"files": files}))
    log.finish(make_result(upload))
    log.append(make_step(sandbox, upload, Kind.REWIND, payload={"to": cell.id, "seq": 1}))
    log.append(make_step(sandbox, cell))
    log.end_sandbox(sandbox.id)
    found = records(log)
    assert events(found) == [
        ("create", None), ("start", None), ("cell", 1), ("upload", 2), ("rewind", 3), ("cell", 4), ("end", None)
    ]  # fmt: skip
    assert {item["user"] for item in found} == {sandbox.owner}
    assert found[2]["source"] == "import os\n\0\ud800"
    assert found[2]["secrets"] == ["KEY"]
    assert found[2]["status"] == "ok"
    assert found[3]["files"] == [{"path": "attachments/a.csv", "blob": files[0]["blob"], "size": 1}]
    assert found[4]["to"] == cell.id
    assert found[5]["status"] is None  # it runs, or a crash ended it
    assert [item["time"] for item in found] == sorted(item["time"] for item in found)
    json.dumps(found)


def test_exported_files_and_reached_hosts_are_named(log, sandbox):
    step = log.append(make_step(sandbox))
    usage = {"cpu_seconds": 1.5, "hosts": {"example.org": "reached"}}
    log.finish(make_result(step, usage=usage, files=[make_file(log, "out.csv", b"1")]))
    (_, cell) = records(log)
    assert cell["files"][0]["path"] == "out.csv"
    assert (cell["cpu_seconds"], cell["hosts"]) == (1.5, usage["hosts"])


def test_a_purge_is_told_and_what_was_purged_is_not(log, sandbox):
    run_cell(log, sandbox, source="secret work")
    log.purge_sandbox(sandbox.id, by="root")
    found = records(log)
    assert events(found) == [("create", None), ("purge", None)]
    assert (found[1]["by"], found[1]["steps"]) == ("root", 1)
    assert "secret work" not in repr(found)


def test_by_user_sandbox_and_time(log, sandbox):
    other = log.create_sandbox("somebody else", "other.ipynb").id
    first = run_cell(log, sandbox)
    run_cell(log, other)
    last = run_cell(log, sandbox, first)
    assert {item["sandbox"] for item in records(log, owner="somebody else")} == {other}
    assert events(records(log, sandbox_id=sandbox.id)) == [
        ("create", None),
        ("cell", 1),
        ("cell", 2),
    ]
    assert [item["id"] for item in records(log, since=last.created)] == [last.id]
    before = records(log, until=last.created, sandbox_id=sandbox.id)
    assert events(before) == [("create", None), ("cell", 1)]
    assert records(log, since=datetime.now(UTC) + timedelta(days=1)) == []


def test_a_long_log_comes_in_pages(log, sandbox):
    parent = None
    for _ in range(1100):
        parent = run_cell(log, sandbox, parent)
    seen = [item["step"] for item in records(log) if "step" in item]
    assert seen == list(range(1, 1101))

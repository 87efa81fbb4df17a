"""``dagger-kernel audit`` and ``dagger-kernel purge``."""

import csv
import io
import json
import stat
import uuid

import pytest

from dagger_kernel.log import SandboxLock, open_log
from dagger_kernel.settings import Settings
from dagger_kernel.steps import Kind, Step, fresh_nonce


@pytest.fixture
def hostile(history):
    """A cell whose source would be a formula, a line, a terminal code."""
    store = open_log(Settings.load())
    for source in ("=cmd|' /C calc'!A0", 'a\n{"time": "forged"}\n\x1b[2Jb'):
        store.append(
            Step(
                id=uuid.uuid4().hex, sandbox_id=history.id, seq=0, parent_id=history.steps[-1].id, kind=Kind.CELL,
                nonce=fresh_nonce(), base_digest="b", runner_digest="r", engine="local", key=uuid.uuid4().hex * 2,
                source=source, payload={},
            )
        )  # fmt: skip
    store.close()
    return history


def test_a_line_a_record_for_people(cli, history):
    ran = cli("audit")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert len(lines) == 5
    assert "  ada  " in lines[0]
    assert lines[1].endswith("/1  upload  ok  attachments/in.csv")
    assert "1 / 0" in lines[3]


def test_json_lines_cannot_be_forged(cli, hostile):
    lines = cli("audit", "--format", "lines").out.splitlines()
    found = [json.loads(line) for line in lines]
    assert len(found) == 7
    assert found[-1]["source"].startswith("a\n{")
    assert "\x1b" not in "".join(lines)
    assert cli("audit", "--json").json == found


def test_a_spreadsheet_gets_no_formula(cli, hostile, environment):
    target = environment / "audit.csv"
    assert cli("audit", "--format", "csv", "--output", target).code == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    rows = list(csv.DictReader(io.StringIO(target.read_text("utf-8"))))
    assert [row["event"] for row in rows][:3] == ["create", "upload", "cell"]
    assert rows[-2]["source"].startswith("'=cmd")
    assert "\x1b" not in target.read_text("utf-8")
    assert json.loads(rows[1]["files"])[0]["path"] == "attachments/in.csv"


def test_narrowed(cli, history):
    assert cli("audit", "--user", "eve").out == ""
    assert len(cli("audit", "--sandbox", "reports/q3.ipynb").out.splitlines()) == 5
    assert cli("audit", "--since", "2999-01-01").out == ""
    assert cli("audit", "--until", "2999-01-01T00:00").out.count("\n") == 5
    assert cli("audit", "--since", "yesterday").code == 2
    assert cli("audit", "--sandbox", "ffffffff").code == 5


def test_a_purge_needs_to_be_meant(cli, history):
    ran = cli("purge", "latest")
    assert ran.code == 6
    assert "4 steps" in ran.err
    assert len(cli("log", "latest", "--json").json["steps"]) == 4


def test_a_purge_leaves_a_tombstone(cli, history, environment):
    layer = environment / "data/layers" / history.steps[1].key[:20]
    (layer / "fs").mkdir(parents=True)
    ran = cli("purge", history.id[:8], "--yes")
    assert (ran.code, ran.err) == (0, "")
    assert not layer.exists()
    assert not [path for path in (environment / "data/blobs").rglob("*") if len(path.name) == 64]
    found = cli("audit", "--json").json
    assert [item["event"] for item in found] == ["create", "purge"]
    assert found[1]["steps"] == 4
    assert found[1]["by"]
    assert cli("check").code == 0
    assert cli("purge", history.id, "--yes").code == 5


def test_a_sandbox_in_use_is_not_purged(cli, history):
    with SandboxLock(Settings.load(), history.id):
        assert cli("purge", history.id, "--yes").code == 6
    assert len(cli("log", "latest", "--json").json["steps"]) == 4

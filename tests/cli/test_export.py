"""``dagger-kernel export``: files come out of the log, never to where they should not."""

import os
import uuid
from pathlib import Path

import pytest

from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings
from dagger_kernel.steps import FileChange, Kind, Result, Status, Step


def test_lists_the_newest_of_each(cli, history):
    out = cli("export", "latest").out
    assert "out.csv" in out
    assert "charts/week.png" in out
    files = {one["path"]: one for one in cli("export", "latest", "--json").json["files"]}
    assert set(files) == {"out.csv", "charts/week.png"}
    assert files["out.csv"]["step"] == 3


def test_writes_the_newest_or_an_older_one(cli, history, environment):
    target = environment / "got.csv"
    cli("export", "latest", "out.csv", "-o", target)
    assert target.read_bytes() == b"two\n"
    cli("export", "latest", "out.csv", "-o", target, "--step", 2)
    assert target.read_bytes() == b"one\n"


def test_into_a_directory_and_into_the_current_one(cli, history, environment, monkeypatch):
    (environment / "there").mkdir()
    cli("export", "latest", "charts/week.png", "-o", environment / "there")
    assert (environment / "there/week.png").read_bytes() == b"\x89PNG"
    monkeypatch.chdir(environment)
    ran = cli("export", "latest", "charts/week.png", "--json")
    assert ran.json["files"][0]["written"] == "week.png"
    assert Path("week.png").is_file()


def test_to_standard_output(process, history):
    assert process("export", "latest", "out.csv", "-o", "-").out == "two\n"


def test_all_of_them(cli, history, environment):
    cli("export", "latest", "--all", "-o", environment / "all")
    assert (environment / "all/out.csv").read_bytes() == b"two\n"
    assert (environment / "all/charts/week.png").read_bytes() == b"\x89PNG"


def test_an_unknown_file(cli, history):
    ran = cli("export", "latest", "nothing.csv")
    assert ran.code == 5
    assert "nothing.csv" in ran.err


def exporting(*paths):
    """Make a sandbox whose steps exported a file each; its content is its path."""
    store = open_log(Settings.load())
    row = store.create_sandbox("eve")
    common = {"base_digest": "b", "runner_digest": "r", "engine": "local", "key": "k", "nonce": "n"}
    for path in paths:
        step = store.append(
            Step(
                id=uuid.uuid4().hex, sandbox_id=row.id, seq=0, parent_id=None, kind=Kind.CELL, **common
            )
        )  # fmt: skip
        blob = store.blobs.put(path.encode("utf-8", "surrogatepass"))
        change = FileChange(path=path, kind="new", size=len(path), blob=blob, mime="text/plain")
        store.finish(Result(step_id=step.id, status=Status.OK, files=[change]))
    store.close()
    return row.id


@pytest.mark.parametrize("path", ["../out", "/etc/out", "a/../../out", "a\0b", ".", "..", "\ud800"])
def test_nothing_is_written_outside(cli, environment, path):
    """Paths come from inside a sandbox."""
    sandbox = exporting("before", path, "after")
    target = environment / "deep/target"
    target.mkdir(parents=True)
    ran = cli("export", sandbox, "--all", "-o", target, "--json")
    done = {item["path"]: item for item in ran.json["files"]}
    assert {"before", "after"} <= {file.name for file in target.iterdir()}
    assert all(
        Path(item["written"]).resolve().is_relative_to(target)
        for item in done.values()
        if "written" in item
    )
    assert ran.code == (0 if "written" in done[path] else 5)
    assert not (environment / "deep/out").exists()
    assert not Path("/etc/out").exists()


def test_a_file_that_became_a_folder_costs_no_other(cli, environment):
    sandbox = exporting("q", "other", "q/r", "w/x", "w", "x" * 256)
    ran = cli("export", sandbox, "--all", "-o", environment / "all")
    assert ran.code == 1
    assert (environment / "all/q/r").read_text() == "q/r"
    assert (environment / "all/w").read_text() == "w"
    assert (environment / "all/other").read_text() == "other"
    assert "Not written: q: Is a directory" in ran.err
    assert "Not written: w/x: File exists" in ran.err
    assert ran.err.count("\n") == 3
    assert ran.out.count("\n") == 3


def test_a_name_that_is_no_utf8_keeps_its_bytes(cli, environment):
    name = b"\xff" * 100 + "é".encode()
    ran = cli("export", exporting(os.fsdecode(name)), "--all", "-o", environment / "all")
    assert ran.code == 0
    assert os.listdir(os.fsencode(environment / "all")) == [name]


@pytest.mark.parametrize("args", [[], ["--all"]])
def test_names_reach_no_terminal(cli, environment, monkeypatch, args):
    """Neither by codes, nor as lines that no command printed."""
    monkeypatch.chdir(environment)
    sandbox = exporting(
        "b\nstep 99\tforged.txt", "\x1b]0;title\x07", "c\r\x85d", "\x1b[2J/../..", "d\u202exe"
    )
    ran = cli("export", sandbox, *args)
    assert ran.out.count("\n") == (4 if args else 6)
    assert "b\ufffdstep 99\ufffdforged.txt" in ran.out
    assert all(char == "\n" or char.isprintable() for char in ran.out + ran.err)


def test_links_in_the_target_are_not_followed(cli, history, environment):
    outside = environment / "outside"
    outside.mkdir()
    target = environment / "all"
    target.mkdir()
    (target / "charts").symlink_to(outside)
    (target / "deep").symlink_to(outside)
    (target / "out.csv").symlink_to(outside / "victim")
    ran = cli("export", history.id, "--all", "-o", target)
    assert ran.code == 5
    assert (target / "out.csv").read_bytes() == b"two\n"
    assert cli("export", exporting("deep/er/x"), "--all", "-o", target).code == 5
    assert list(outside.iterdir()) == []

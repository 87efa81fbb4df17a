"""``dagger-kernel export``: files come out of the log, never to where they should not."""

from pathlib import Path

import pytest


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


@pytest.mark.parametrize("path", ["../out", "/etc/out", "a/../../out", "a\0b", ".", ".."])
def test_nothing_is_written_outside(environment, path):
    """Paths come from inside a sandbox."""
    from dagger_kernel.cli.export import save_all
    from dagger_kernel.errors import SandboxPathError
    from dagger_kernel.log import open_log
    from dagger_kernel.settings import Settings
    from dagger_kernel.steps import FileChange, Kind, Result, Status, Step

    store = open_log(Settings.load())
    row = store.create_sandbox("eve")
    common = {"base_digest": "b", "runner_digest": "r", "engine": "local", "key": "k", "nonce": "n"}
    step = store.append(
        Step(id="1" * 32, sandbox_id=row.id, seq=0, parent_id=None, kind=Kind.CELL, **common)
    )
    change = FileChange(path=path, kind="new", size=1, blob=store.blobs.put(b"x"))
    store.finish(Result(step_id=step.id, status=Status.OK, files=[change]))
    target = environment / "deep/target"
    target.mkdir(parents=True)
    try:
        written = save_all(store, row.id, target)
    except SandboxPathError:
        written = []
    finally:
        store.close()
    assert all(file.resolve().is_relative_to(target) for file in written)
    assert not (environment / "deep/out").exists()
    assert not Path("/etc/out").exists()


def test_links_in_the_target_are_not_followed(cli, history, environment):
    outside = environment / "outside"
    outside.mkdir()
    target = environment / "all"
    target.mkdir()
    (target / "charts").symlink_to(outside)
    (target / "out.csv").symlink_to(outside / "victim")
    ran = cli("export", "latest", "--all", "-o", target)
    assert ran.code == 5
    assert list(outside.iterdir()) == []

"""``dagger-kernel gc`` and ``dagger-kernel check``."""

import os
import sqlite3


def test_gc_removes_caches_and_nothing_else(cli, history, environment):
    data = environment / "data"
    for name in ("layers/a/fs", "bases/b/fs"):
        (data / name).mkdir(parents=True)
        (data / name / "file").write_bytes(b"x" * 10_000)
    (data / "layers/a/fs").chmod(0o500)
    ran = cli("gc", "--json")
    assert ran.json["removed"]["layers"]["size"] >= 10_000
    assert not (data / "layers/a").exists()
    assert not (data / "bases/b").exists()
    assert len(cli("log", "latest", "--json").json["steps"]) == 4


def test_gc_removes_blobs_that_nothing_names(cli, history, environment):
    """They are what a crash between storing a file and logging it leaves behind."""
    from dagger_kernel.log import open_log
    from dagger_kernel.settings import Settings

    store = open_log(Settings.load())
    digest = store.blobs.put(b"left behind")
    store.close()
    (path,) = (environment / "data/blobs").rglob(digest)
    os.utime(path, (0, 0))
    assert cli("gc", "--json").json["removed"]["blobs"] == {"count": 1, "size": len(b"left behind")}
    assert not path.exists()
    assert cli("check").code == 0


def test_gc_with_nothing_there(cli):
    assert cli("gc").code == 0


def test_check_of_an_intact_log(cli, history):
    ran = cli("check")
    assert ran.code == 0, ran.out + ran.err
    assert "intact" in ran.out
    assert cli("check", "--json").json["ok"] is True


def test_check_finds_a_changed_row(cli, history, environment):
    with sqlite3.connect(environment / "data/log.sqlite") as database:
        for (name,) in database.execute(
            "select name from sqlite_master where type = 'trigger'"
        ).fetchall():
            database.execute(f'drop trigger "{name}"')
        changed = database.execute("update step set source = 'other' where seq = 2").rowcount
    database.close()
    assert changed == 1
    ran = cli("check")
    assert ran.code == 1
    assert history.id in ran.out or "2" in ran.out


def test_check_finds_a_damaged_blob(cli, history, environment):
    blob = max(path for path in (environment / "data/blobs").rglob("*") if len(path.name) == 64)
    blob.chmod(0o600)
    blob.write_bytes(b"something else")
    ran = cli("check", "--json")
    assert ran.code == 1
    assert ran.json["problems"]

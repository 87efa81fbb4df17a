"""``dagger-kernel doctor``: it finds what is missing and says what to do."""

import pytest

from dagger_kernel.cli import checks
from dagger_kernel.settings import Settings


@pytest.fixture
def engines(monkeypatch):
    """Let the test say what the engines say of themselves."""
    said = {
        "local": {"available": True, "reasons": [], "remedies": [], "python": "3.12.1"},
        "dagger": {"available": False, "reasons": ["Nothing is set."], "remedies": ["Set it."]},
    }

    async def look(name, _settings, _measure):
        return dict(said[name])

    monkeypatch.setattr("dagger_kernel.cli.doctor._look_at", look)
    return said


def test_one_engine_is_enough(cli, engines):
    ran = cli("doctor")
    assert ran.code == 0, ran.out
    assert "Cells can run here, on the local engine." in ran.out
    assert "Set it." in ran.out
    assert "missing" not in ran.out
    report = cli("doctor", "--json").json
    assert report["ok"] is True
    assert {"name", "state", "found", "remedy"} == set(report["checks"][0])


def test_no_engine(cli, engines):
    engines["local"] = {
        "available": False,
        "reasons": ["No user namespaces."],
        "remedies": ["Allow."],
    }
    ran = cli("doctor")
    assert ran.code == 1
    assert "No user namespaces." in ran.out
    assert "Allow." in ran.out
    assert cli("doctor", "--json").json["ok"] is False


def test_the_engine_that_was_asked_for(cli, engines, monkeypatch):
    monkeypatch.setenv("DAGGER_KERNEL_ENGINE", "dagger")
    ran = cli("doctor")
    assert ran.code == 1
    assert "Nothing is set." in ran.out


def test_measured_time_is_shown(cli, engines):
    engines["local"]["step_seconds"] = 0.0213
    assert "One step on the local engine: 21 ms" in cli("doctor").out


def test_a_slow_step_is_noted_with_its_likely_cause(cli, engines):
    engines["dagger"] = {"available": True, "reasons": [], "remedies": [], "step_seconds": 1.2}
    ran = cli("doctor")
    assert ran.code == 0
    assert "one step takes 1.20 s, which is slow" in ran.out
    assert "CA certificates" in ran.out


def test_switched_off(cli, engines, monkeypatch):
    monkeypatch.setenv("DAGGER_KERNEL_ENABLED", "false")
    ran = cli("doctor")
    assert ran.code == 1
    assert "DAGGER_KERNEL_ENABLED" in ran.out


def test_a_bad_setting_does_not_stop_it(cli, monkeypatch):
    monkeypatch.setenv("DAGGER_KERNEL_WALL_SECONDS", "soon")
    ran = cli("doctor")
    assert ran.code == 1
    assert "wall_seconds" in ran.out


def test_a_data_directory_that_is_a_file(cli, engines, environment, monkeypatch):
    (environment / "file").write_text("")
    monkeypatch.setenv("DAGGER_KERNEL_DATA_DIR", str(environment / "file/below"))
    ran = cli("doctor")
    assert ran.code == 1
    assert "Traceback" not in ran.err


def test_no_space(monkeypatch):
    monkeypatch.setattr(
        checks.shutil, "disk_usage", lambda _path: checks.shutil._ntuple_diskusage(9, 8, 1)
    )
    found = {check.name: check for check in checks.of_settings(Settings.load())}
    assert found["disk space"].state == "missing"
    assert "gc" in found["disk space"].remedy


def test_passwords_are_not_shown(cli, engines):
    engines["dagger"]["reasons"] = ["https://ada:secret@index.example/ does not answer"]
    for args in (["doctor"], ["doctor", "--json"]):
        assert "secret" not in cli(*args).out
    assert "***@index.example" in cli("doctor").out


def test_it_makes_no_log(cli, engines, environment):
    cli("doctor")
    assert not (environment / "data").exists()


def test_a_log_of_another_version(cli, engines, history, environment):
    import sqlite3

    with sqlite3.connect(environment / "data/log.sqlite") as database:
        database.execute("update alembic_version set version_num = '9999'")
    database.close()
    ran = cli("doctor")
    assert ran.code == 1
    assert "9999" in ran.out
    assert cli("log").code == 4


@pytest.mark.parametrize("user, state", [(0, "note"), (1000, "ok")])
def test_root_is_warned(cli, engines, monkeypatch, user, state):
    monkeypatch.setattr("os.geteuid", lambda: user)
    report = cli("doctor", "--json").json
    (found,) = [check for check in report["checks"] if check["name"] == "user"]
    assert found["state"] == state
    assert ("ordinary user" in found["remedy"]) == (user == 0)
    assert report["ok"] is True

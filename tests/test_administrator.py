"""What the administrator wrote holds, whatever a user says: in code, in the environment, in a config file, in a notebook."""

from __future__ import annotations

import pytest

from dagger_kernel.engines.select import select_engine
from dagger_kernel.errors import SettingError
from dagger_kernel.settings import Settings, maximum_limits, parse
from dagger_kernel.steps import Limits


@pytest.fixture
def admin(tmp_path, monkeypatch):
    """Write the administrator's file."""

    def write(text):
        file = tmp_path / "admin.toml"
        file.write_text(text)
        monkeypatch.setattr("dagger_kernel.settings.ADMIN_FILE", file)

    return write


@pytest.fixture
def user(tmp_path):
    """Return an environment with a user's config file and variables."""

    def make(config="", **variables):
        file = tmp_path / "user.toml"
        file.write_text(config)
        names = {f"DAGGER_KERNEL_{name.upper()}": value for name, value in variables.items()}
        return {"DAGGER_KERNEL_CONFIG": str(file), **names}

    return make


FIXED = """
[fixed]
enabled = false
engine = "local"
allowed_engines = "local"
network = "none"
max_running = 3
wall_seconds = 60
runner_host = ""
"""


@pytest.mark.parametrize(
    "name, wanted, others",
    [("enabled", False, "true"), ("engine", "local", "dagger"), ("allowed_engines", "local", "local dagger"),
     ("network", "none", "host"), ("max_running", 3, "100"), ("wall_seconds", 60.0, "6000")],
)  # fmt: skip
def test_what_is_fixed_cannot_be_overridden(admin, user, name, wanted, others):
    admin(FIXED)
    line = f"{name} = {others!r}"
    assert getattr(Settings.load({}), name) == wanted
    assert getattr(Settings.load(user(**{name: others})), name) == wanted
    assert getattr(Settings.load(user(line)), name) == wanted
    assert getattr(Settings.load({}, **{name: others}), name) == wanted


def test_a_users_file_has_no_fixed_and_no_maximum(admin, user):
    """It is the place that tells an administrator's file from a user's."""
    admin("[maximum]\nwall_seconds = 300\n")
    environ = user(
        "[fixed]\nwall_seconds = 5000\n[maximum]\nwall_seconds = 5000\n", wall_seconds="4000"
    )
    assert Settings.load(environ).wall_seconds == 300
    assert maximum_limits().wall_seconds == 300


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e999", "0"])
@pytest.mark.parametrize("name", ["wall_seconds", "cpu_seconds"])
def test_no_number_gets_around_a_maximum(admin, user, name, value):
    """NaN compares false with every maximum; -1 is no limit at all to setrlimit."""
    admin(f"[maximum]\n{name} = 300\n")
    for attempt in (
        lambda: Settings.load(user(**{name: value})),
        lambda: Settings.load({}, **{name: float(value)}),
        lambda: Settings.load(
            user(f"{name} = {'0.0' if value == '0' else value if value != '1e999' else 'inf'}")
        ),
    ):
        with pytest.raises(SettingError):
            attempt()


@pytest.mark.parametrize(
    "name", ["memory_bytes", "processes", "open_files", "disk_bytes", "max_running", "standby_max"]
)
def test_no_negative_number_is_a_setting(user, name):
    for value in ("-1", "-1GiB"):
        with pytest.raises(SettingError):
            Settings.load(user(**{name: value}))
    with pytest.raises(SettingError):
        Settings.load({}, **{name: -1})


@pytest.mark.parametrize("table", ["fixed", "maximum"])
def test_a_misspelt_rule_is_no_missing_rule(admin, table):
    admin(f"[{table}]\nwal_seconds = 60\n")
    with pytest.raises(SettingError, match=f"{table}.wal_seconds"):
        Settings.load({})


def test_an_unreadable_file_is_no_missing_file(admin):
    admin("[fixed\n")
    with pytest.raises(SettingError):
        Settings.load({})


async def test_an_engine_that_is_not_allowed_is_refused(tmp_path):
    settings = Settings(engine="dagger", allowed_engines="local", data_dir=str(tmp_path))
    with pytest.raises(SettingError, match="allowed ones: local"):
        await select_engine(settings, None)


def test_limits_of_a_cell_that_cannot_be_used():
    assert Limits().unusable() is None
    assert Limits(export_files=0, file_bytes=0).unusable() is None
    for name in (
        "wall_seconds",
        "cpu_seconds",
        "memory_bytes",
        "processes",
        "open_files",
        "disk_bytes",
    ):
        for value in (0, -1, float("nan"), float("inf")):
            assert Limits(**{name: value}).unusable() == name
    assert parse("memory_bytes", "4GiB") == 4 << 30


async def test_a_cell_above_the_maximum_is_told_and_recorded(admin, fresh_data_dir):
    from dagger_kernel import AsyncSandbox

    admin("[maximum]\nwall_seconds = 50\nmemory_bytes = '512MiB'\n")
    async with await AsyncSandbox.open(data_dir=str(fresh_data_dir)) as sandbox:
        done = await sandbox.run("pass", limits=Limits(wall_seconds=500.0))
        assert "".join(done.logs.stderr) == (
            "[dagger_kernel] wall_seconds is 50.0 and not 500.0: the administrator's maximum.\n"
        )
        done = await sandbox.run("pass", limits=Limits(wall_seconds=20.0))
        assert done.logs.stderr == []
        steps = await sandbox._session.steps()
        assert [step.limits.wall_seconds for step, _ in steps] == [50.0, 20.0]
        assert {step.limits.memory_bytes for step, _ in steps} == {512 << 20}
        for bad in (
            Limits(wall_seconds=float("nan")),
            Limits(open_files=-1),
            Limits(memory_bytes=0),
        ):
            with pytest.raises(SettingError):
                await sandbox.run("pass", limits=bad)
        assert len(await sandbox._session.steps()) == 2

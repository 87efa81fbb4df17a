"""An engine that cannot be used: one clear message, within the time limit, with a way out."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from dagger_kernel.engines.dagger import DaggerEngine
from dagger_kernel.engines.dagger.cli import child_environment, find_cli
from dagger_kernel.engines.dagger.connection import PREFIX, sweep
from dagger_kernel.engines.select import select_engine
from dagger_kernel.errors import (
    EngineConnectionError,
    EngineUnavailableError,
    EngineVersionError,
)
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings

SECONDS = 3.0
"""For engines that never answer."""
AMPLE = 30.0
"""For stand-ins that tell at once, on a machine that may be busy."""
SLACK = 5.0


def command(tmp_path, text):
    """Make a stand-in for the dagger command."""
    path = tmp_path / "dagger"
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
async def refused(tmp_path, capfd):
    """Prepare with these settings; return the error, checked to be told in time and quietly."""
    log = open_log(Settings.load(data_dir=str(tmp_path / "data")))

    async def prepare(kind, **changes):
        values = {"cli_bin": "", "runner_host": "", "connect_seconds": AMPLE, **changes}
        settings = Settings.load(data_dir=str(tmp_path / "data"), engine="dagger", **values)
        engine = DaggerEngine(settings, log.blobs)
        began = time.monotonic()
        with pytest.raises(kind) as caught:
            await engine.prepare()
        report = await engine.describe()
        await engine.close()
        assert time.monotonic() - began < 2 * (settings.connect_seconds + SLACK)
        assert report["available"] is False
        assert report["reasons"] == [caught.value.what]
        assert report["remedies"]
        assert caught.value.remedy
        told = capfd.readouterr()
        assert told.err == ""
        assert told.out == ""
        return caught.value

    yield prepare
    log.close()


async def test_without_a_dagger_command(refused, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    error = await refused(EngineUnavailableError)
    assert "no dagger command in PATH" in error.what
    assert "DAGGER_KERNEL_CLI_BIN" in error.remedy


async def test_with_a_dagger_command_that_is_not_there(refused, tmp_path):
    error = await refused(EngineUnavailableError, cli_bin=str(tmp_path / "missing"))
    assert "DAGGER_KERNEL_CLI_BIN" in error.what


async def test_with_a_dagger_command_that_is_no_program(refused, tmp_path):
    path = tmp_path / "dagger"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    error = await refused(EngineUnavailableError, cli_bin=str(path))
    assert "cannot be started" in error.what


async def test_where_nothing_listens(refused, tmp_path):
    cli = command(tmp_path, "import time; time.sleep(600)")
    host = f"unix://{tmp_path}/nothing.sock"
    error = await refused(EngineConnectionError, cli_bin=cli, runner_host=host)
    assert host in error.what
    assert "No such file" in error.what
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = await refused(EngineConnectionError, cli_bin=cli, runner_host=f"tcp://127.0.0.1:{port}")
    assert "refused" in error.what


async def test_where_something_listens_that_never_answers(refused, tmp_path):
    pids = tmp_path / "pids"
    cli = command(
        tmp_path,
        f"import os, time; print(os.getpid(), file=open({str(pids)!r}, 'a')); time.sleep(600)",
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        error = await refused(
            EngineConnectionError, cli_bin=cli, runner_host=host, connect_seconds=SECONDS
        )
    assert f"did not answer within {SECONDS:g} s" in error.what
    assert "DAGGER_KERNEL_CONNECT_SECONDS" in error.remedy
    begun = pids.read_text().split()
    assert begun
    assert [pid for pid in begun if Path("/proc", pid).exists()] == []


async def test_an_engine_of_another_version(refused, tmp_path):
    cli = command(
        tmp_path,
        "import sys; print('Error: incompatible engine version v0.1.0', file=sys.stderr); sys.exit(1)",
    )
    error = await refused(EngineVersionError, cli_bin=cli)
    assert "v0.1.0" in error.what
    assert "dagger-io" in error.remedy


@pytest.mark.dagger
async def test_a_real_engine_of_another_version(refused, monkeypatch):
    # Dagger's own switch for its tests: the command takes every engine for too old.
    monkeypatch.setenv("_EXPERIMENTAL_DAGGER_MIN_VERSION", "v0.99.0")
    error = await refused(
        EngineVersionError,
        cli_bin=os.environ.get("DAGGER_KERNEL_CLI_BIN", ""),
        runner_host=os.environ["DAGGER_KERNEL_RUNNER_HOST"],
    )
    assert "incompatible engine version" in error.what


async def test_no_container_runtime(refused, tmp_path):
    cli = command(
        tmp_path,
        "import sys; print('Error: start engine: failed to run command [docker version]', "
        "file=sys.stderr); sys.exit(1)",
    )
    error = await refused(EngineUnavailableError, cli_bin=cli)
    assert "docker version" in error.what
    assert "DAGGER_KERNEL_RUNNER_HOST" in error.remedy


async def test_a_session_that_says_something_else(refused, tmp_path):
    cli = command(tmp_path, "print('hello')")
    error = await refused(EngineConnectionError, cli_bin=cli)
    assert "hello" in error.what


async def test_a_session_without_an_engine_behind_it(refused, tmp_path):
    cli = command(
        tmp_path,
        'import sys; print(\'{"port": 9, "session_token": "x"}\', flush=True); sys.stdin.read()',
    )
    await refused(EngineConnectionError, cli_bin=cli)


async def test_auto_names_the_unreachable_host_and_takes_the_local_engine(shared_base, tmp_path):
    host = f"unix://{tmp_path}/nothing.sock"
    cli = command(tmp_path, "pass")
    settings = Settings.load(
        data_dir=str(tmp_path / "data"), engine="auto", runner_host=host, cli_bin=cli
    )
    log = open_log(settings)
    engine = await select_engine(settings, log.blobs)
    assert engine.name == "local"
    await engine.close()
    log.close()


def test_the_engine_is_named_to_the_child_alone(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector")
    monkeypatch.setenv("DAGGER_CLOUD_TOKEN", "secret")
    monkeypatch.setenv("DAGGER_SESSION_PORT", "1234")
    before = dict(os.environ)
    env = child_environment(Settings.load(runner_host="tcp://engine:1234"))
    assert env["_EXPERIMENTAL_DAGGER_RUNNER_HOST"] == "tcp://engine:1234"
    assert env["DO_NOT_TRACK"] == "1"
    assert not {"OTEL_EXPORTER_OTLP_ENDPOINT", "DAGGER_CLOUD_TOKEN", "DAGGER_SESSION_PORT"} & set(
        env
    )
    assert dict(os.environ) == before


def test_the_command_of_the_settings_comes_first(tmp_path, monkeypatch):
    in_path, wanted = tmp_path / "path", tmp_path / "wanted"
    for place in (in_path, wanted):
        place.mkdir()
        command(place, "pass")
    monkeypatch.setenv("PATH", str(in_path))
    assert find_cli(Settings.load(cli_bin="")) == str(in_path / "dagger")
    assert find_cli(Settings.load(cli_bin=str(wanted / "dagger"))) == str(wanted / "dagger")


def test_what_killed_kernels_left_is_removed(tmp_path):
    import fcntl

    dead, alive, other = (tmp_path / f"{PREFIX}{name}" for name in ("dead", "alive", "other"))
    for place in (dead, alive, other):
        place.mkdir()
    (dead / "lock").touch()
    (other / "file").touch()
    with open(alive / "lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}alive", f"{PREFIX}other"]

"""Start-up, errors, exit codes."""

import json
import subprocess
import sys

import pytest

from dagger_kernel import errors
from dagger_kernel._version import __version__
from dagger_kernel.cli.exits import ExitCode, exit_code


def test_version(cli):
    assert cli("--version").out == f"dagger-kernel {__version__}\n"


def test_the_version_needs_nothing_heavy():
    code = (
        "import sys; from dagger_kernel.cli import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: print(sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in ("typer", "rich", "sqlalchemy", "ipykernel", "jupyter_client", "dagger", "numpy"):
        assert f"'{name}'" not in done.stdout


def test_help_imports_no_command(cli):
    ran = cli("--help")
    assert ran.code == 0
    for name in ("install", "doctor", "prepare", "log", "export", "demo", "check", "gc"):
        assert name in ran.out


@pytest.mark.parametrize("args", [["nonsense"], ["log", "--nonsense"], ["export"]])
def test_wrong_usage(process, args):
    ran = process(*args)
    assert ran.code == ExitCode.USAGE
    assert "Traceback" not in ran.err


def test_a_bad_setting_is_named(cli, monkeypatch):
    monkeypatch.setenv("DAGGER_KERNEL_MEMORY_BYTES", "plenty")
    ran = cli("log")
    assert ran.code == ExitCode.USAGE
    assert "memory_bytes" in ran.err
    assert "plenty" in ran.err


def test_a_config_file_that_is_not_toml(cli, environment):
    (environment / "none.toml").write_text("this is not toml")
    assert cli("log").code == ExitCode.USAGE


@pytest.mark.parametrize("as_json", [False, True])
def test_bugs_are_one_message_unless_asked(cli, monkeypatch, as_json):
    def broken(*_args, **_options):
        raise RuntimeError("what nobody foresaw")

    monkeypatch.setattr("dagger_kernel.cli.log.run", broken)
    ran = cli("log", *(["--json"] if as_json else []))
    assert ran.code == ExitCode.BUG
    assert "what nobody foresaw" in ran.err
    assert "Traceback" not in ran.err
    if as_json:
        assert json.loads(ran.err)["error"]["type"] == "RuntimeError"


@pytest.mark.parametrize(
    "error", [OSError(17, "File exists", "b\nError: c\x1b[2J"), errors.BlobError("x\x1b[2J", "y")]
)
def test_an_error_carries_no_terminal_codes(cli, monkeypatch, error):
    def broken(*_args, **_options):
        raise error

    monkeypatch.setattr("dagger_kernel.cli.log.run", broken)
    ran = cli("log")
    assert "\x1b" not in ran.err
    assert "\nError" not in ran.err


def test_debug_shows_the_traceback(process, monkeypatch):
    monkeypatch.setenv("DAGGER_KERNEL_DEBUG", "1")
    assert "Traceback" in process("log").err


def test_a_closed_pipe_is_quiet(history):
    code = "from dagger_kernel.cli import main; main()"
    done = subprocess.run(
        f'{sys.executable} -c "{code}" log latest --json | head -c 1',
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


EXAMPLES = {
    errors.SettingError("x", 1, "y"): ExitCode.USAGE,
    errors.SandboxDisabledError(): ExitCode.REFUSED,
    errors.PermissionDeniedError("x"): ExitCode.REFUSED,
    errors.SandboxBusyError("x", "y"): ExitCode.REFUSED,
    errors.EngineUnavailableError("x"): ExitCode.ENGINE,
    errors.BaseBuildError("x"): ExitCode.ENGINE,
    errors.CapacityError(10, 50): ExitCode.ENGINE,
    errors.LogVersionError("2", "1"): ExitCode.LOG,
    errors.LogIntegrityError("x"): ExitCode.LOG,
    errors.SandboxNotFoundError("x"): ExitCode.NOT_FOUND,
    errors.StepNotFoundError("x"): ExitCode.NOT_FOUND,
    errors.StorageFullError("x"): ExitCode.FULL,
    OSError(28, "No space left on device"): ExitCode.FULL,
    PermissionError(13, "Permission denied"): ExitCode.REFUSED,
    ValueError("x"): ExitCode.BUG,
}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_exit_codes(error):
    assert exit_code(error) is EXAMPLES[error]

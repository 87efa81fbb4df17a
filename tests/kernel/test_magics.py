"""%sandbox and %%sandbox."""

import pytest

from dagger_kernel.kernel import magics
from dagger_kernel.kernel.magics import CellCall, LineCalls, UsageError, find, limits_of
from dagger_kernel.settings import Settings
from dagger_kernel.steps import Language

PYTHON, BASH = Language.PYTHON, Language.BASH


class Session:
    settings = Settings()


def test_which_cells_are_for_the_kernel():
    assert find("x = 1", PYTHON) is None
    assert find("%sandbox", PYTHON) == LineCalls([[]])
    assert find("\n  # which one?\n%sandbox id\n", PYTHON) == LineCalls([["id"]])
    assert find("%sandbox id\n%sandbox log 3", PYTHON) == LineCalls([["id"], ["log", "3"]])
    assert find("%%sandbox --wall 600\nx = 1\ny", PYTHON) == CellCall(["--wall", "600"], "x = 1\ny")
    assert find("%%sandbox --wall=9\nls", BASH) == CellCall(["--wall=9"], "ls")
    assert find("%sandboxes", PYTHON) is None
    assert find("%sandbox recompute rows", PYTHON) is None
    assert find("%sandbox recompute rows\nnext(rows)", PYTHON) is None
    assert find("%sandbox recompute rows", BASH) == LineCalls([["recompute", "rows"]])
    assert find("x = '''\n%sandbox id\n'''", PYTHON) is None
    assert find("print('%sandbox')", PYTHON) is None


@pytest.mark.parametrize(
    "code",
    [
        "x = 1\n%sandbox id",
        "%sandbox id\nx = 1",
        "%sandbox 'open",
        "%sandbox recompute x\n%sandbox id",
    ],
)
def test_a_magic_among_other_code_is_an_error(code):
    with pytest.raises(UsageError):
        find(code, PYTHON)


def test_limits_of_one_cell():
    limits = limits_of(
        CellCall(["--wall", "600", "--memory=4GiB", "--cpu", "1.5", "--files", "7"], ""), Session()
    )
    assert limits.wall_seconds == 600
    assert limits.memory_bytes == 4 << 30
    assert limits.cpu_seconds == 1.5
    assert limits.export_files == 7
    assert limits.disk_bytes == Settings().disk_bytes


@pytest.mark.parametrize(
    "words",
    [["--wall"], ["--wall", "soon"], ["--wall", "0"], ["--wall", "-1"], ["--wall", "nan"],
     ["--wall", "inf"], ["--memory", "lots"], ["--speed", "9"], ["600"]],
)  # fmt: skip
def test_unusable_options(words):
    with pytest.raises(UsageError):
        limits_of(CellCall(words, ""), Session())


def test_the_administrators_maximum_holds(monkeypatch, tmp_path):
    admin = tmp_path / "admin.toml"
    admin.write_text("[maximum]\nwall_seconds = 300\n")
    monkeypatch.setattr("dagger_kernel.settings.ADMIN_FILE", admin)
    assert limits_of(CellCall(["--wall", "300"], ""), Session()).wall_seconds == 300
    with pytest.raises(UsageError, match="maximum, 300"):
        limits_of(CellCall(["--wall", "301"], ""), Session())


def test_every_command_answers(scripted):
    scripted.execute("pass")
    words = {"rewind": "1", "upload": "kernel-0.log"}
    for name in magics.commands.COMMANDS:
        got = scripted.execute(f"%sandbox {name} {words.get(name, '')}")
        assert got.content["status"] == "ok", name
        assert got.stdout, name


def test_the_id_alone(scripted):
    got = scripted.execute("%sandbox id")
    first = scripted.execute("pass").reply["metadata"]["dagger_kernel"]["sandbox"]
    assert got.stdout == first + "\n"
    assert got.outputs[0]["msg_type"] == "stream"


def test_magics_are_no_steps(scripted):
    scripted.execute("%sandbox")
    scripted.execute("%sandbox id")
    assert scripted.execute("pass").reply["metadata"]["dagger_kernel"]["seq"] == 1


def test_reset_begins_a_new_sandbox(scripted):
    before = scripted.execute("%sandbox id").stdout
    assert scripted.execute("%sandbox reset").content["status"] == "ok"
    assert scripted.execute("%sandbox id").stdout != before


def test_limits_reach_the_cell(scripted):
    got = scripted.execute(
        "%%sandbox --wall 600 --memory 4GiB\n"
        "emit('stream', name='stdout', text=f'{cell.limits.wall_seconds} {cell.limits.memory_bytes}')"
    )
    assert got.stdout == f"600.0 {4 << 30}"


def test_wrong_use_is_an_error_and_no_step(scripted):
    for code in ("%sandbox nonsense", "%%sandbox --wall soon\nx", "x\n%sandbox", "%sandbox rewind",
                 "%sandbox rewind -1", "%sandbox rewind first", "%sandbox fork 1 2"):  # fmt: skip
        got = scripted.execute(code)
        assert got.enames == ["UsageError"]
    assert scripted.execute("pass").reply["metadata"]["dagger_kernel"]["seq"] == 1

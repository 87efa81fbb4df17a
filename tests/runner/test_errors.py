"""Every way a cell can fail: one error, a word for the status, and what was done before stays."""

from __future__ import annotations

import re

import pytest

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def plain(result) -> str:
    return ANSI.sub("", "\n".join(result.error["traceback"]))


def test_traceback_shows_the_cell(room):
    result = room.run("def f():\n    return 1 / 0\nf()")
    assert result.status == "error"
    assert result.error["ename"] == "ZeroDivisionError"
    assert result.order == ["hello", "error", "done"]
    assert "Cell In[1], line 3" in plain(result)
    assert "----> 2     return 1 / 0" in plain(result) or "return 1 / 0" in plain(result)
    assert "\x1b[" in result.error["traceback"][0]


def test_source_of_an_earlier_cell_is_shown(room):
    room.run("def area(r):\n    return r / 0")
    room.run("class Tank:\n    size = 3")
    result = room.run("area(2)")
    assert "return r / 0" in plain(result)
    assert "Cell In[1], line 2" in plain(result)
    assert "size = 3" in room.run("import inspect\nprint(inspect.getsource(Tank))").stdout


def test_syntax_error_runs_nothing(room):
    result = room.run("print('no')\nx = (1 +")
    assert result.error["ename"] in ("SyntaxError", "_IncompleteInputError")
    assert result.stdout == ""


def test_state_before_the_error_stays(room):
    room.run("a = 1\nopen('half.txt', 'w').write('written')\nraise RuntimeError('stop')")
    assert room.run("print(a, open('half.txt').read())").stdout == "1 written\n"


def test_system_exit(room):
    result = room.run("v = 1\nimport sys\nsys.exit(3)")
    assert result.error["ename"] == "SystemExit"
    assert result.error["evalue"] == "3"
    assert (result.status, result.done["exit_code"]) == ("error", 3)
    assert room.run("v").result == "1"


def test_lone_surrogate_and_broken_str(room):
    result = room.run("raise ValueError('bad ' + chr(0xd8ff))")
    assert result.error["ename"] == "ValueError"
    result = room.run(
        "class Silent(Exception):\n    def __str__(self):\n        raise ValueError('str failed')\nraise Silent"
    )
    assert result.error["ename"] == "Silent"


def test_exception_groups_and_notes(room):
    result = room.run(
        "error = ExceptionGroup('several', [ValueError('one'), TypeError('two')])\n"
        "error.add_note('a note')\nraise error"
    )
    assert result.error["ename"] == "ExceptionGroup"
    text = plain(result)
    assert "ValueError: one" in text
    assert "a note" in text
    assert "/IPython/" not in text


def test_recursion_and_huge_messages_stay_small(room):
    result = room.run("def down(n):\n    return down(n + 1)\ndown(0)")
    assert result.error["ename"] == "RecursionError"
    assert len("".join(result.error["traceback"])) < 100_000
    result = room.run("raise ValueError('v' * 5_000_000)")
    assert len("".join(result.error["traceback"])) + len(result.error["evalue"]) < 100_000


def test_error_while_the_result_is_shown(room):
    result = room.run(
        "class Bad:\n    def __repr__(self):\n        raise ZeroDivisionError('repr')\nBad()"
    )
    assert result.status == "error"
    assert result.error["ename"] == "ZeroDivisionError"


def test_segfault(room):
    room.run("v = 7")
    result = room.run("w = 8\nimport ctypes\nctypes.string_at(0)")
    assert (result.status, result.done["exit_code"]) == ("error", -11)
    assert "SIGSEGV" in result.error["evalue"]
    assert "as before" in result.error["evalue"]
    assert result.exit_code == 0
    assert room.run("(v, 'w' in globals())").result == "(7, False)"


def test_hard_exits(any_room):
    result = any_room.run("print('text', flush=True)\nimport os\nos._exit(4)")
    assert (result.status, result.done["exit_code"]) == ("error", 4)
    assert result.stdout == "text\n"
    result = any_room.run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert result.done["exit_code"] == -9
    result = any_room.run("import os\nos._exit(0)")
    assert result.status == "error"


def test_killing_the_parent_is_no_way_out(any_room):
    result = any_room.run("import os, signal\nos.kill(os.getppid(), signal.SIGTERM)\n'still here'")
    assert result.result == "'still here'"


def test_chained_errors(room):
    result = room.run(
        "try:\n    open('missing-part')\nexcept OSError as exc:\n    raise RuntimeError('wrapped') from exc"
    )
    text = plain(result)
    assert text.index("missing-part") < text.index("wrapped")


def test_magic_errors(room):
    assert room.run("%%time\nopen('not-there')").error["ename"] == "FileNotFoundError"
    assert room.run("%nosuchmagic").status == "error"
    assert room.run("%%bash\nexit 3").error["ename"] == "CalledProcessError"


def test_each_failure_has_exactly_one_error_frame(room):
    for source in (
        "%nosuchmagic",
        "%%nosuch\nx",
        "1 +",
        "  x",
        "raise KeyboardInterrupt",
        "%run missing.py",
    ):
        assert len(room.run(source).of("error")) == 1, source


@pytest.mark.parametrize("reason", ["OSError(5)", "'my words'", "object()", "7"])
def test_an_exceptions_own_reason_is_its_own_business(room, reason):
    """URLError's is an exception; it cost the cell its variables."""
    result = room.run(f"kept = 1\nerror = ValueError('v')\nerror.reason = {reason}\nraise error")
    assert (result.status, result.done["reason"], result.error["ename"]) == (
        "error",
        "",
        "ValueError",
    )
    assert room.run("kept").result == "1"


@pytest.mark.parametrize(("code", "kept"), [("3", 3), ("-1", 255), ("256", 0), ("2**70 + 5", 5), ("'no'", 1), ("True", 1), ("", 0)])  # fmt: skip
def test_exit_codes_are_those_of_a_process(room, code, kept):
    assert room.run(f"import sys\nsys.exit({code})").done["exit_code"] == kept


@pytest.mark.parametrize("same_cell", [True, False])
def test_the_users_own_handler_shows_an_error_alone(room, same_cell):
    source = """
def handler(shell, kind, error, trace, tb_offset=None):
    print('CUSTOM', kind.__name__)
get_ipython().set_custom_exc((ZeroDivisionError,), handler)"""
    if same_cell:
        source += "\n1 / 0"
    else:
        room.run(source)
        source = "1 / 0"
    result = room.run(source)
    assert (result.stdout, result.stderr, result.status) == (
        "CUSTOM ZeroDivisionError\n",
        "",
        "error",
    )
    assert (result.error["ename"], result.error["traceback"]) == ("ZeroDivisionError", [])
    assert result.error["handled"] is True
    room.run("get_ipython().set_custom_exc((), None)")
    assert "handled" not in room.run("1 / 0").error


def test_a_handler_that_fails_is_told(room):
    room.run("get_ipython().set_custom_exc((KeyError,), lambda *_args, **_options: 1 / 0)")
    result = room.run("{}[1]")
    assert "Custom TB Handler failed" in result.stderr
    assert (result.status, result.error["ename"]) == ("error", "KeyError")


def test_an_earlier_error_is_kept_without_secrets(room):
    key = "tok-'5up3r\\s3cr3t\"\nsecond-line"
    for source in ("raise ValueError(key)", "raise KeyError(key)", "use(key.split()[1])"):
        room.run(
            f"import os\ndef use(token):\n    raise OSError(token)\nkey = os.environ['KEY']\n{source}",
            env={"KEY": key, "MODE": "fast"},
        )
        shown = plain(room.run("%tb"))
        assert "***" in shown
        assert "5up3r" not in shown
        assert "second-line" not in shown
    kept = [path for path in room.root.rglob("*") if path.is_file()]
    assert kept
    assert not any(b"5up3r" in path.read_bytes() for path in kept)

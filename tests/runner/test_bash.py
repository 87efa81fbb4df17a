"""The Bash language: each cell one bash, with a terminal's memory."""

from __future__ import annotations

import pytest


@pytest.fixture
def bash(room):
    def run(source, **more):
        return room.run(source, language="bash", **more)

    return run


def test_memory_from_cell_to_cell(bash):
    bash(
        "mkdir -p 'a b'; cd 'a b'; export WIDE='x\ny'; plain=1; f() { echo \"f $1\"; }; alias ll='ls -la'\n"
        "set -o pipefail; shopt -s globstar; arr=(1 2 '3 4'); declare -A map=([k]=v)"
    )
    result = bash(
        'pwd; echo "$WIDE"; echo $plain; f 2; alias ll; echo "${arr[2]} ${map[k]}"\n'
        "set -o | grep pipefail; shopt globstar; env | grep -c ^plain"
    )
    lines = result.stdout.splitlines()
    assert lines[0].endswith("/home/a b")
    assert lines[1:7] == ["x", "y", "1", "f 2", "alias ll='ls -la'", "3 4 v"]
    assert "on" in lines[7]
    assert "on" in lines[8]
    assert lines[9] == "0"


def test_exit_codes(bash):
    result = bash("echo text; exit 3")
    assert (result.status, result.done["exit_code"]) == ("error", 3)
    assert (result.error["ename"], result.error["evalue"]) == ("ExitCode", "exit code 3")
    assert bash("echo $?").stdout == "3\n"
    assert bash("echo $?").stdout == "0\n"
    assert bash("nosuchcommand").done["exit_code"] == 127
    assert bash("if").done["exit_code"] == 2


def test_errexit_and_unset_variables(bash):
    result = bash("set -eu\ncd /tmp\nfalse\necho not reached")
    assert (result.stdout, result.done["exit_code"]) == ("", 1)
    assert bash("pwd").stdout == "/tmp\n"
    assert bash("echo $undefined").status == "error"
    assert bash('set +eu; echo "<$undefined>"').stdout == "<>\n"


def test_unset_and_function_removal(bash):
    bash("a=1; f() { :; }; alias x=y")
    bash("unset a; unset -f f; unalias x")
    assert bash('echo "<$a>"; type f; alias').stdout == "<>\n"


def test_output_files_and_limits(bash):
    result = bash("echo out; echo err >&2; echo data > made.txt")
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert result.files["made.txt"]["body"] == b"data\n"
    result = bash("while :; do :; done", limits={"cpu_seconds": 1})
    assert (result.status, result.done["reason"]) == ("limit", "cpu")


def test_background_jobs_end(bash):
    assert bash("sleep 60 & echo $(( 1 + 1 ))").stdout == "2\n"


def test_both_languages_share_files(room, bash):
    bash("echo 5 > n")
    assert room.run("x = 1\nopen('n').read()").result == "'5\\n'"
    bash("true")
    assert room.run("x").result == "1"


def test_completion(room, bash):
    bash("export LONG_NAME=1; my_function() { :; }; touch file_one.txt")
    runner = room.start()

    def complete(code):
        reply = runner.ask("complete", language="bash", code=code, cursor_pos=len(code))
        return reply["matches"], reply["cursor_start"]

    assert complete("echo $LONG_N") == (["$LONG_NAME"], 5)
    assert complete("my_func") == (["my_function"], 0)
    assert complete("cat file_o") == (["file_one.txt"], 4)
    assert (
        runner.ask("is_complete", language="bash", code="for i in 1; do")["status"] == "incomplete"
    )
    assert runner.ask("is_complete", language="bash", code="echo 'open")["status"] == "incomplete"
    assert runner.ask("is_complete", language="bash", code="echo hi")["status"] == "complete"
    runner.close()


def test_options_and_exported_functions_carry_over(bash):
    bash("set -e -o noclobber; g() { echo from-g; }; export -f g; false || true")
    result = bash("bash -c g; echo x > f; echo y > f; echo not reached")
    assert (result.stdout, result.status) == ("from-g\n", "error")
    assert bash("echo $?; set +e; false; echo on").stdout == "1\non\n"


def test_own_exit_trap(bash):
    result = bash("cd /tmp; trap 'echo bye' EXIT; echo work")
    assert result.stdout == "work\nbye\n"
    assert bash("pwd").stdout.startswith("/")


def test_line_numbers_and_stdin(bash):
    result = bash("true\nnosuchcommand_x\ncat; echo end")
    assert "line 2" in result.stderr
    assert result.stdout == "end\n"


@pytest.mark.parametrize(
    ("code", "cursor", "words"),
    [
        ("cd", 2, ["cd is a shell builtin", "Change the shell working directory"]),
        ("for", 1, ["for is a shell keyword", "Execute commands for each member"]),
        ("greet", 3, ["greet is a function", 'echo "hello $1"']),
        ("echo $NAME", 8, ['NAME="Ada L."']),
        ('echo "${NAME}"', 11, ['NAME="Ada L."']),
        ("echo ${list[1]}", 8, ['declare -a list=([0]="a" [1]="b")']),
        ("NAME", 2, ['NAME="Ada L."']),
        ("ll", 1, ["ll is aliased to `ls -la'"]),
        ("x=1 cat -n file", 10, ["cat is ", "/cat"]),
        ("if true; then greet 'é🎉", 22, ["greet is a function"]),
        ("ls | sort -u", 12, ["sort is "]),
    ],
)
def test_inspect(room, code, cursor, words):
    room.run(
        "greet() { echo \"hello $1\"; }; NAME='Ada L.'; list=(a b); alias ll='ls -la' type=false",
        language="bash",
    )
    runner = room.start()
    reply = runner.ask("inspect", code=code, cursor_pos=cursor, language="bash")
    assert reply["found"]
    for word in words:
        assert word in reply["data"]["text/plain"]
    runner.close()


@pytest.mark.parametrize("code", ["", "nosuchthing", "$nosuchvariable", "--", "'", "$(./made.sh", "`./made.sh"])  # fmt: skip
def test_inspect_of_nothing_runs_nothing(room, code):
    room.run("echo 'touch ran' > made.sh; chmod +x made.sh", language="bash")
    runner = room.start()
    reply = runner.ask("inspect", code=code, cursor_pos=len(code), language="bash")
    assert reply["found"] == ("made.sh" in code)
    assert not (room.home / "ran").exists()
    runner.close()


def test_a_question_mark_opens_the_pager(bash):
    bash("greet() { echo hi; }")
    for source in ("greet?", "? greet", " greet?? "):
        result = bash(source)
        (page,) = result.done["payloads"]
        assert (page["source"], "greet is a function" in page["data"]["text/plain"]) == (
            "page",
            True,
        )
        assert result.status == "ok"
    assert bash("nosuch?").stdout == "Command `nosuch` not found.\n"
    assert bash("echo a?; echo b?").stdout == "a?\nb?\n"


def test_clear_clears_the_output(bash):
    result = bash("echo before; clear; echo after")
    assert len(result.of("clear")) == 1
    assert result.order[1:4] == ["stdout", "clear", "stdout"]
    assert result.stdout == "before\nafter\n"
    # With text at hand there is no flicker; a slow machine must not decide what is at hand.
    result = bash(r"echo before; printf '\e[H\e[2Jafter\n'")
    assert [head["wait"] for head in result.of("clear")] == [True]
    assert result.stdout == "before\nafter\n"
    result = bash("echo before; sleep 0.3; clear; sleep 0.3; clear; sleep 0.3")
    assert [head["wait"] for head in result.of("clear")] == [False]
    assert bash("printf 'a\\e[1mb\\e[H'").stdout == "a\x1b[1mb\x1b[H"

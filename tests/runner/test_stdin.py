"""input(), getpass() and debuggers over the link; answers are recorded and replayed, passwords never."""

from __future__ import annotations


def converse(room, source, answers, **more):
    """Run a cell, answering its questions."""
    runner = room.start()
    room.count += 1
    runner.step(source, allow_stdin=True, execution_count=room.count, **more)
    answers = list(answers)
    prompts = []
    while (frame := runner.receive()) is not None:
        runner.frames.append(frame)
        head = frame[0]
        if head["type"] == "input_request":
            prompts.append((head["prompt"], head["password"]))
            runner.send({"type": "input", "value": answers.pop(0)})
        if head["type"] == "done":
            break
    from .harness import Result

    return Result(runner.frames, runner.process.wait(10)), prompts


SOURCE = "import getpass\nwho = input('who? ')\nword = getpass.getpass('word: ')\nprint(len(who), len(word))"


def test_answers_are_recorded_but_no_passwords(room):
    result, prompts = converse(room, SOURCE, ["Ada", "s3cret"])
    assert prompts == [("who? ", False), ("word: ", True)]
    assert result.stdout == "3 6\n"
    assert result.done["answers"] == ["Ada", None]


def test_text_stands_before_the_question(room):
    result, _ = converse(room, "print('first')\ninput('q')\nprint('last')", ["a"])
    assert result.order == ["hello", "stdout", "input_request", "stdout", "result", "done"][:4] + [
        "done"
    ]


def test_replay_takes_the_record(room):
    result = room.run("input('a') + input('b')", answers=["one", "two"])
    assert result.result == "'onetwo'"
    assert result.done["answers"] == ["one", "two"]
    assert result.of("input_request") == []


def test_replay_of_a_password_says_so(room):
    result = room.run(SOURCE, answers=["Ada", None])
    assert result.status == "error"
    assert "passwords are not recorded" in result.error["evalue"]
    result = room.run("input('more? ')", answers=[])
    assert result.error["ename"] == "EOFError"


def test_not_allowed_fails_at_once(room):
    assert room.run("input()").error["ename"] == "StdinNotImplementedError"
    assert (
        room.run("import getpass; getpass.getpass()").error["ename"] == "StdinNotImplementedError"
    )


def test_refused_answer(room):
    runner = room.start()
    runner.step("input('? ')", allow_stdin=True)
    runner.until("input_request")
    runner.send({"type": "input", "error": "nobody is there"})
    result = runner.finish()
    assert (result.error["ename"], result.error["evalue"]) == ("EOFError", "nobody is there")


def test_stdin_itself_is_empty(room):
    result = room.run(
        "import subprocess, sys\nprint(repr(sys.stdin.read()), subprocess.run(['cat'], capture_output=True).stdout)"
    )
    assert result.stdout == "'' b''\n"


def test_breakpoint_and_post_mortem(room):
    result, prompts = converse(room, "y = 41\nbreakpoint()\nz = 1", ["p y + 1", "c"])
    assert "42\n" in result.stdout
    assert prompts[0][0] in ("(Pdb) ", "ipdb> ", "--Call--")
    assert result.status == "ok"
    result, prompts = converse(
        room,
        "def f():\n    inner = 5\n    1 / 0\ntry:\n    f()\nexcept Exception:\n    import pdb, sys; pdb.post_mortem(sys.exc_info()[2])",
        ["p inner * 3", "q"],
    )
    assert "15" in result.stdout


def test_debug_magic_in_the_same_cell(room):
    result, _ = converse(room, "%debug print(40 + 2)", ["c", "c", "c", "c"])
    assert "42" in result.stdout


def test_input_from_a_thread(room):
    result, _ = converse(
        room,
        "import threading\ngot = []\nt = threading.Thread(target=lambda: got.append(input('t? ')))\nt.start(); t.join(); got",
        ["from thread"],
    )
    assert result.result == "['from thread']"


def test_printing_thread_while_waiting_for_input(room):
    runner = room.start()
    runner.step(
        "import sys, threading, time\n"
        "def chatter():\n"
        "    for i in range(20):\n        print('o', flush=True); print('e', file=sys.stderr); display(i); time.sleep(0.01)\n"
        "t = threading.Thread(target=chatter); t.start()\nx = input('? ')\nt.join()",
        allow_stdin=True,
    )
    runner.until("input_request")
    seen = 0
    while seen < 19:
        runner.until("display")
        seen = sum(head["type"] == "display" for head, _ in runner.frames)
    runner.send({"type": "input", "value": "v"})
    assert runner.finish().done["answers"] == ["v"]


def test_pdb_on_lasts_and_opens_where_a_later_cell_fails(room):
    room.run("%pdb on")
    result, prompts = converse(
        room, "def f():\n    inner = 5\n    1 / 0\nf()", ["p inner * 3", "q"]
    )
    assert len(prompts) == 2
    assert "15\n" in result.stdout
    assert result.error["ename"] == "ZeroDivisionError"
    assert result.status == "error"
    assert room.run("1 / 0").status == "error"  # nobody answers: the error alone
    room.run("%pdb off")
    result, prompts = converse(room, "1 / 0", [])
    assert not prompts


def test_pdb_on_an_exception_group(room):
    room.run("%pdb on")
    result, prompts = converse(room, "raise ExceptionGroup('g', [ValueError(1)])", ["q"])
    assert (len(prompts), result.error["ename"]) == (1, "ExceptionGroup")


def test_debug_after_the_failed_cell_says_what_to_do(room):
    room.run("1 / 0")
    result = room.run("%debug")
    assert result.error["ename"] == "UsageError"
    assert "%pdb on" in result.error["evalue"]


def test_tb_shows_the_last_failed_cells_error(room):
    assert room.run("%tb").stderr == "No traceback available to show.\n"
    room.run("def f():\n    return 1 / 0\nf()")
    room.run("fine = 1")
    result = room.run("%tb")
    assert (result.status, result.error["ename"]) == ("ok", "ZeroDivisionError")
    assert "\x1b[36mf\x1b[39m" in "".join(result.error["traceback"])

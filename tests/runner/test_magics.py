"""IPython as notebooks use it."""

from __future__ import annotations

import pytest


def test_shell_commands(room):
    result = room.run(
        "!echo line\nlines = !printf 'a\\nb\\n'\nprint(list(lines))\n!exit 3\nprint(_exit_code)"
    )
    assert result.stdout == "line\n['a', 'b']\n3\n"
    result = room.run("for word in ['one', 'two words']:\n    !echo \"<{word}>\"")
    assert result.stdout == "<one>\n<two words>\n"


def test_script_cells(room):
    result = room.run("%%bash\necho to-out\necho to-err >&2")
    assert (result.stdout, result.stderr) == ("to-out\n", "to-err\n")
    assert room.run("%%bash --no-raise-error\nexit 4").status == "ok"
    assert room.run("%%sh --out text\necho captured").status == "ok"
    assert room.run("text").result == "'captured\\n'"


def test_capture_lasts(room):
    room.run("%%capture got\nimport sys\nprint('in')\nprint('err', file=sys.stderr)\ndisplay(5)")
    result = room.run("print(repr(got.stdout), repr(got.stderr), len(got.outputs))")
    assert result.stdout == "'in\\n' 'err\\n' 1\n"


def test_writefile_run_and_load(room):
    room.run(
        "%%writefile job.py\nimport sys\nanswer = 42\nprint('args', sys.argv[1:])\nsys.exit(0)"
    )
    assert room.run("%run job.py one").stdout == "args ['one']\n"
    assert room.run("answer").result == "42"


def test_who_reset_and_time(room):
    room.run("alpha = 1\nbeta = 'b'")
    assert "alpha" in room.run("%who").stdout
    assert "beta" in room.run("%whos").stdout
    assert "Wall time" in room.run("%time sum(range(10))").stdout
    room.run("%reset -f")
    assert room.run("alpha").error["ename"] == "NameError"


def test_saved_names_hide_magics_and_macros_run(room):
    room.run("who = 'Ada'\nls = 5")
    assert room.run("who").result == "'Ada'"
    assert room.run("ls + 1").result == "6"
    room.run("print('macro ran')")
    room.run("%macro -q again 4")
    assert room.run("again").stdout == "macro ran\n"


def test_cd_env_and_alias(room):
    room.run("import os\nos.mkdir('sub')\n%cd -q sub\n%env JOB=night")
    assert (
        room.run("import os\nos.path.basename(os.getcwd()), os.environ['JOB']").result
        == "('sub', 'night')"
    )


@pytest.mark.parametrize("call", ["hi bob", "%hi bob", "  hi bob", "hi bob\n"])
def test_an_alias_of_an_earlier_cell_needs_no_percent(room, call):
    room.run("%alias hi echo hello %s")
    assert room.run(call).stdout == "hello bob\n"
    room.run("%unalias hi")
    assert room.run(call.replace("%", "")).error["ename"] == "SyntaxError"


def test_a_magic_of_an_earlier_cell_needs_no_percent(room):
    room.run(
        "from IPython.core.magic import register_line_magic as m\nm(lambda line: line.upper(), 'up')"
    )
    room.run("@get_ipython().register_magic_function\ndef up(line): return line.upper()\ndel up")
    assert room.run("up abc").result == "'ABC'"


def test_autoreload(room):
    room.run("%load_ext autoreload\n%autoreload 2")
    room.run("%%writefile livemod.py\ndef f(): return 1")
    room.run("import livemod")
    room.run(
        "import time; time.sleep(0.02)\nopen('livemod.py', 'w').write('def f(): return 222\\n')"
    )
    assert room.run("livemod.f()").result == "222"


def test_gui_and_matplotlib(room):
    assert room.run("%gui\n%matplotlib inline\n1").result == "1"


def test_top_level_await(room):
    result = room.run(
        "import asyncio\nasync def work():\n    await asyncio.sleep(0.01)\n    return 'done'\n"
        "print(await asyncio.gather(work(), work()))\nr = await work()"
    )
    assert result.stdout == "['done', 'done']\n"
    assert (
        room.run("async with asyncio.timeout(1):\n    print(await work(), r)").stdout
        == "done done\n"
    )


def test_asyncio_run_and_tasks(room):
    result = room.run(
        "import asyncio\nasync def hi(): print('ran')\nloop = asyncio.get_event_loop()\n"
        "loop.run_until_complete(hi())\nasyncio.run(hi())"
    )
    assert (result.stdout, result.status) == ("ran\nran\n", "ok")


@pytest.mark.parametrize("ending", ["", "\nawait asyncio.sleep(0)"])
def test_tasks_left_behind_get_a_moment(room, ending):
    result = room.run(
        "import asyncio\nasync def later():\n    await asyncio.sleep(0.1)\n    print('later')\n"
        "task = asyncio.create_task(later())\nprint('cell ends')" + ending
    )
    assert result.stdout == "cell ends\nlater\n"


def test_exit_and_quit(room):
    result = room.run("exit")
    assert result.status == "ok"
    assert result.done["payloads"][0]["source"] == "ask_exit"


def test_hostile_names(room):
    room.run(
        "import builtins\njson = os = sys = pickle = 'mine'\ndef open(*a, **k):\n    raise RuntimeError('my open')\n"
        "def print(*a):\n    builtins.print('mine:', *a)\nlist = dict = len = None"
    )
    assert room.run("print(json)").stdout == "mine: mine\n"
    assert room.run("del open, print, list, dict, len\nprint(len([1]))").stdout == "1\n"


def test_replaced_streams(room):
    assert room.run("import sys, io\nsys.stdout = io.StringIO()\nprint('lost')").status == "ok"
    assert room.run("import sys\nsys.stdout.close()\nprint('x')").status == "error"
    assert room.run("print('back')").stdout == "back\n"


def test_environment(cold_room):
    runner = cold_room.start(
        env={"OTEL_X": "1", "TRACEPARENT": "2", "DAGGER_SESSION": "3", "KEPT": "4"}
    )
    runner.step(
        "import os\nsorted(n for n in os.environ if n.startswith(('OTEL', 'TRACE', 'DAGGER', 'KEPT')))"
    )
    assert runner.finish().result == "['KEPT']"
    assert cold_room.run("import os; os.environ['SECRET']", env={"SECRET": "s"}).result == "'s'"
    assert cold_room.run("import os; 'SECRET' in os.environ").result == "False"


def test_main_module(room):
    result = room.run(
        "import sys, __main__\nthing = 5\n(__main__.thing, sys.modules['__main__'].__dict__ is globals(), __name__, sys.argv)"
    )
    assert result.result == "(5, True, '__main__', [''])"


def test_multiprocessing(room):
    result = room.run(
        "import multiprocessing as mp\ndef work(n):\n    print('worker', n, flush=True)\n    return n\n"
        "with mp.get_context('fork').Pool(2) as pool:\n    r = pool.map(work, range(4))\nprint(sum(r))"
    )
    assert result.stdout.count("worker") == 4
    assert result.stdout.endswith("6\n")
    assert result.done["killed"] == []
    from_spawn = room.run(
        "import math\nwith mp.get_context('spawn').Pool(1) as pool:\n    print(pool.map(math.sqrt, [4]))"
    )
    assert from_spawn.stdout == "[2.0]\n"


@pytest.mark.parametrize("source", ["%nosuch", "x = 1\n%nosuch 2", "%%nosuch\nx", "%edit"])
def test_a_magics_complaint_is_shown_once(room, source):
    result = room.run(source)
    assert (result.error["ename"], result.status) == ("UsageError", "error")
    assert len(result.error["traceback"]) == 1
    assert result.stderr == ""


def test_store_keeps_values(room):
    assert room.run("x = [1]\n%store x").stdout == "Stored 'x' (list)\n"
    room.run("del x")
    result = room.run("%store -r x\nx")
    assert result.result == "[1]"
    assert result.files == {}
    assert "x" in room.run("%store").stdout
    assert "x" not in room.run("%store -d x\n%store").stdout


def test_earlier_inputs_can_be_listed_and_searched(room):
    for source in ("a = 1", "b = 2", "a = 1"):
        room.run(source)
    assert room.run("%history -l 2").stdout == "b = 2\na = 1\n"
    assert room.run("%history -n -l 1").stdout == "   4: %history -l 2\n"
    found = room.run("%history -u -g a*").stdout.splitlines()
    assert [line.split(":")[-1].strip() for line in found] == [
        "a = 1",
        "%history -u -g a*",
    ]
    assert (
        room.run("get_ipython().history_manager.get_tail(1)").result
        == "[(0, 6, '%history -u -g a*')]"
    )


def test_directories_are_remembered(room):
    room.run("%mkdir -p one\n%cd one\n%alias shout echo loud")
    assert room.run("%shout").stdout == "loud\n"
    assert room.run("%cd -").stdout.endswith("/home\n")
    assert len(room.run("%dhist").stdout.splitlines()) == 4
    room.run("%pushd one")
    assert room.run("%popd").stdout.splitlines()[0].endswith("/home")


def test_reset_leaves_ipython_in_place(room):
    room.run("x = 1\n%load_ext autoreload")
    result = room.run("%reset -f")
    assert result.done["state"]["saved"] == []
    result = room.run("%who\n%unload_ext autoreload\nget_ipython()")
    assert result.stdout.startswith("Interactive namespace is empty.")
    assert "doesn't define how to unload" in result.stdout
    assert result.stderr == ""


def test_xdel_and_load(room):
    room.run("x = [1]")
    assert room.run("%xdel x").status == "ok"
    assert room.run("x").error["ename"] == "NameError"
    assert room.run("%recall 1").done["payloads"] == [
        {"source": "set_next_input", "text": "x = [1]", "replace": False}
    ]
    assert room.run("%autosave 60").status == "ok"


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ("install x", "uv pip install --python P --compile-bytecode x"),
        ("install -q --user --progress-bar off x", "uv pip install --python P --compile-bytecode -q x"),
        ("-q install --no-input x -U", "uv pip install --python P --compile-bytecode -q x -U"),
        ("install --root-user-action=ignore -I x", "uv pip install --python P --compile-bytecode --reinstall x"),
        ("install 'x; python_version > \"3\"' && foo --user", "uv pip install --python P --compile-bytecode 'x; python_version > \"3\"' && foo --user"),
        ("uninstall -y x", "uv pip uninstall --python P x"),
        ("--version", "uv --version"),
        ("-V | cat", "uv --version| cat"),
        ("", "uv pip --help"),
        ("list --format json", "uv pip list --python P --format json"),
    ],
)  # fmt: skip
def test_pips_words_become_uvs(monkeypatch, arguments, command):
    from dagger_kernel.runner import system

    monkeypatch.setattr(system.sys, "executable", "P")
    assert system.uv_pip(arguments) == command


def test_a_transformer_changes_later_cells(room):
    room.run(
        "get_ipython().input_transformers_post.append(\n"
        "    lambda lines: [line.replace('MAGIC', '5') for line in lines])"
    )
    assert room.run("MAGIC + 1").result == "6"
    assert room.run("y = MAGIC\ny").result == "5"


def test_builtins_look_like_the_module(room):
    result = room.run(
        "print(__builtins__, 'len' in dir(__builtins__), 'keys' in dir(__builtins__))\n"
        "__builtins__.shout = str.upper\nshout('x'), __builtins__.len('ab')"
    )
    assert result.stdout == "<module 'builtins' (built-in)> True False\n"
    assert result.result == "('X', 2)"

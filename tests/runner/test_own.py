"""What a cell replaces in the standard library, the runner does not use; where it left a file, nothing of ours is."""

from __future__ import annotations

import pytest

from dagger_kernel.runner.descriptors import LOWEST

OWN = [
    "json.dumps", "json.loads", "builtins.open", "builtins.print", "builtins.sorted",
    "os.path.join", "os.path.exists", "os.write", "os.read", "os.open", "os.close", "os.listdir", "os.replace",
    "os.makedirs", "os.getpid", "os.fork", "os._exit", "time.time", "time.monotonic", "time.perf_counter",
    "struct.pack", "struct.Struct", "pickle.dumps", "pickle.Pickler", "socket.socket.send", "socket.send_fds",
    "io.BytesIO", "threading.Lock", "threading.enumerate", "re.compile", "contextlib.suppress", "select.select",
    "traceback.format_exception", "functools.partial", "collections.deque", "gc.get_referents",
]  # fmt: skip
WITHOUT_IT_NOTHING_WORKS = [
    "builtins.len", "builtins.isinstance", "builtins.getattr", "builtins.dict", "builtins.list",
    "builtins.__import__",
]  # fmt: skip


def replace(name, by="lambda *_args, **_options: 1 / 0"):
    return f"import {name.partition('.')[0]}\nv, w = [1], {{'a': 2}}\n{name} = {by}"


@pytest.mark.parametrize("name", OWN)
def test_a_cell_may_break_what_the_runner_uses(room, name):
    result = room.run(replace(name))
    assert (result.status, result.of("error")) == ("ok", [])
    assert result.done["state"]["saved"] != []
    assert room.run("print(v); w['a'] += 1").stdout == "[1]\n" or name == "builtins.print"
    assert "'a': 3" in room.run("import sys; sys.stdout.write(f'{v}{w}\\n')").stdout or (
        name == "builtins.print"
    )


@pytest.mark.parametrize("name", WITHOUT_IT_NOTHING_WORKS)
def test_what_nothing_works_without_is_put_back_alone(room, name):
    room.run("import json\njson.dumps = lambda *_args, **_options: 'PATCHED'")
    told = f"put back, as Python's own libraries do not work with the cell's: {name}\n"
    assert told in room.run(replace(name)).stderr
    assert room.run("print(v, w, json.dumps(1))").stdout == "[1] {'a': 2} PATCHED\n"


@pytest.mark.parametrize(
    ("name", "by", "call", "shown"),
    [
        ("json.dumps", "lambda *_args, **_options: 'PATCHED'", "json.dumps({})", "PATCHED"),
        (
            "json.dumps",
            "lambda *args, real=json.dumps: 'P' + real(*args)",
            "json.dumps([2])",
            "P[2]",
        ),
        ("os.path.join", "lambda *_args: 'PJ'", "os.path.join('a', 'b')", "PJ"),
        ("os.listdir", "lambda *_args: ['L']", "os.listdir('/')", "['L']"),
        (
            "builtins.print",
            "lambda *args, real=None: __import__('sys').stdout.write('P\\n')",
            "1",
            "P",
        ),
        ("time.time", "lambda: 5", "time.time()", "5"),
        ("threading.Lock", "lambda: 'lock'", "threading.Lock()", "lock"),
        ("re.compile", "lambda *_args, **_options: 'pattern'", "re.compile('a')", "pattern"),
        ("socket.socket.send", "lambda *_args: 'sent'", "socket.socket.send(1)", "sent"),
    ],
)
def test_a_replacement_is_in_force_in_later_cells(room, name, by, call, shown):
    assert room.run(replace(name, by)).status == "ok"
    for _ in range(2):
        assert room.run(f"import {name.partition('.')[0]}\nprint({call})").stdout == f"{shown}\n"


def test_modules_may_be_taken_out(room):
    source = "import sys\nv = 1\nfor name in ('json', 'os', 'ast', 'pickle', 'builtins'): del sys.modules[name]"
    assert room.run(source).of("error") == []
    assert room.run("v").result == "1"


def test_displays_and_errors_leave_a_cell_that_broke_json(any_room):
    result = any_room.run(f"{replace('json.dumps')}\ndisplay(3)\nprint('text' * 30000)\nv[5]")
    assert result.error["ename"] == "IndexError"
    assert result.of("display")[0]["data"] == {"text/plain": "3"}


def test_a_number_of_an_earlier_cell_is_nobodys_file(any_room):
    room = any_room
    room.run("import os\nx = list(range(9))\nfile = os.open(os.devnull, os.O_RDONLY)")
    tried = f"""
for number in range(3, {LOWEST}):
    try:
        os.fstat(number)
    except OSError as error:
        assert error.errno == 9
    else:
        print(number, os.readlink(f"/proc/self/fd/{{number}}"))
os.closerange(3, {LOWEST})
os.read(file, 1)"""
    result = room.run(f"import os\nx, file\n{tried}")
    assert result.error["ename"] == "OSError"
    assert "Bad file descriptor" in result.error["evalue"]
    assert result.stdout == ""
    assert room.run("print(len(x))").stdout == "9\n"


def test_a_low_limit_of_open_files_leaves_the_runner_its_own(room):
    limits = {"open_files": 32}
    source = "files = []\ntry:\n    while True: files.append(open('/dev/null'))\nexcept OSError: print(len(files) > 20)"
    assert room.run(source, limits=limits).stdout == "True\n"
    assert room.run("print(1)\n2", limits=limits).result == "2"

"""Text, results and displays of a cell: complete, in order, within the limits."""

from __future__ import annotations

import base64


def test_display_stands_between_prints(room):
    result = room.run("print('before')\ndisplay(1)\nprint('after')")
    assert result.order == ["hello", "stdout", "display", "stdout", "done"]
    assert result.stdout == "before\nafter\n"


def test_stdout_and_stderr_keep_their_order(room):
    result = room.run(
        "import sys\nfor i in range(3):\n    print('out', i)\n    print('err', i, file=sys.stderr)"
    )
    texts = "".join(head["text"] for head in result.of("stream"))
    assert texts == "".join(f"out {i}\nerr {i}\n" for i in range(3))


def test_children_and_c_code_write_in_order(room):
    result = room.run(
        "import os, subprocess, sys\n"
        "print('1', end=' ')\n"
        "os.system('printf \"2 \"')\n"
        "sys.stdout.write('3 ')\n"
        "subprocess.run(['printf', '4 '])\n"
        "import ctypes; libc = ctypes.CDLL(None); libc.printf(b'5 '); libc.fflush(None)\n"
        "!printf '6 '\n"
        "os.write(1, b'7')"
    )
    assert result.stdout == "1 2 3 4 5 6 7"
    assert result.result == "1"


def test_split_characters_nul_and_broken_bytes(room):
    result = room.run(
        "import os, time\n"
        "os.write(1, b'a\\xe2\\x82'); time.sleep(0.1); os.write(1, b'\\xacb\\0c')\n"
        "time.sleep(0.1); os.write(1, b'\\xff\\xe2'); print(); print(chr(0xd8ff))"
    )
    assert result.stdout == "a€b\0c\ufffd\ufffd\n\\ud8ff\n"


def test_text_without_newline_arrives_while_the_cell_runs(room):
    runner = room.start()
    runner.step("import time\nprint('.', end='')\nwhile True: time.sleep(0.05)")
    runner.until_text(".")
    runner.interrupt()
    assert runner.finish().status == "interrupted"


def test_print_flood_is_cut_and_kept(room):
    result = room.run(
        "print('z' * 5_000_000)\nprint('last line')",
        limits={"output_bytes": 10_000, "kept_output_bytes": 6_000_000},
    )
    assert len(result.stdout) == 10_000
    assert result.stderr.count("DAGGER_KERNEL_OUTPUT_BYTES") == 1
    (whole,) = [body for head, body in result.frames if head["type"] == "overflow"]
    assert whole == b"z" * 5_000_000 + b"\nlast line\n"
    assert result.done["truncated"]


def test_kept_text_has_its_own_cap(room):
    result = room.run(
        "print('y' * 100_000)", limits={"output_bytes": 100, "kept_output_bytes": 5000}
    )
    (whole,) = [body for head, body in result.frames if head["type"] == "overflow"]
    assert whole == b"y" * 5000


def test_huge_result_is_cut(room):
    result = room.run("'q' * 3_000_000")
    assert len(result.result) < 300_000
    assert result.status == "ok"


def test_huge_display_data_is_left_out(room):
    result = room.run(
        "display({'text/html': 'x' * 50_000, 'text/plain': 'p'}, raw=True)",
        limits={"file_bytes": 10_000},
    )
    (display,) = result.of("display")
    assert "text/html" not in display["data"]
    assert "50000" in display["data"]["text/plain"]


def test_rich_results_become_json(room):
    result = room.run(
        "import datetime, math\n"
        "class Rich:\n"
        "    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        "        return {'image/png': b'\\x89PNG', 'application/json': {'nan': math.nan, 'when': datetime.date(2024, 2, 29),"
        " 'set': {1}, 'tuple': (1, 2), 5: 'five'}, 'text/plain': 'rich'}, {'image/png': {'width': 3}}\n"
        "Rich()"
    )
    (head,) = result.of("result")
    assert base64.b64decode(head["data"]["image/png"]) == b"\x89PNG"
    assert head["data"]["application/json"] == {
        "nan": "nan", "when": "2024-02-29", "set": [1], "tuple": [1, 2], "5": "five"
    }  # fmt: skip
    assert head["metadata"] == {"image/png": {"width": 3}}


def test_display_handles_update_and_clear(room):
    result = room.run(
        "from IPython.display import clear_output\n"
        "handle = display('one', display_id='meter')\n"
        "handle.update('two')\nclear_output(wait=True)"
    )
    first, second = result.of("display")
    assert not first["update"]
    assert second["update"]
    assert first["transient"] == second["transient"] == {"display_id": "meter"}
    assert result.of("clear") == [{"type": "clear", "wait": True}]


def test_display_from_forked_children_and_threads(room):
    result = room.run(
        "import os, threading\n"
        "threads = [threading.Thread(target=lambda: display('t' * 50_000)) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "for _ in range(3):\n"
        "    if (pid := os.fork()) == 0:\n"
        "        display('child'); os._exit(0)\n"
        "    os.waitpid(pid, 0)"
    )
    shown = [head["data"]["text/plain"] for head in result.of("display")]
    assert sorted(shown) == sorted(["'child'"] * 3 + [repr("t" * 50_000)] * 4)


def test_forked_child_repeats_no_text(room):
    result = room.run(
        "import os\nprint('before', end=' ')\npid = os.fork()\nif pid == 0:\n    os._exit(0)\n"
        "_ = os.waitpid(pid, 0)\nprint('after')"
    )
    assert result.stdout == "before after\n"


def test_buffer_and_popen_with_sys_stdout(room):
    result = room.run(
        "import subprocess, sys\n_ = sys.stdout.buffer.write(b'raw\\n')\n"
        "_ = subprocess.Popen(['echo', 'through'], stdout=sys.stdout).wait()"
    )
    assert result.stdout == "raw\nthrough\n"


def test_last_expression_rules(room):
    assert room.run("1;").of("result") == []
    assert room.run("2; # quiet").of("result") == []
    assert room.run("3; 4").result == "4"
    assert room.run("_ + 10").result == "14"
    assert room.run("Out[3] + 100").result == "104"
    assert room.run("[_, __, ___, _3, len(Out)]").result == "[104, 14, 4, 4, 3]"
    assert room.run("Out").result.startswith("{3: 4,")


def test_input_history_over_steps(room):
    room.run("a = 1")
    room.run("b = 2", store_history=False)
    room.count -= 1
    room.run("%time c = 3")
    assert room.run("[In[1], _i2, _i]").result == "['a = 1', '%time c = 3', '%time c = 3']"
    assert room.run("%history 1-2").stdout == "a = 1\n%time c = 3\n"


def test_silent_step_stores_nothing(room):
    result = room.run("x = 5\nx", silent=True)
    assert result.of("result") == []
    assert room.run("x").result == "5"


def test_user_expressions_only_after_success(room):
    result = room.run("x = 20", user_expressions={"good": "x + 1", "bad": "1 / 0"})
    expressions = result.done["user_expressions"]
    assert expressions["good"]["data"]["text/plain"] == "21"
    assert expressions["bad"]["ename"] == "ZeroDivisionError"
    assert room.run("1 / 0", user_expressions={"x": "x"}).done["user_expressions"] == {}


def test_pager_and_next_input_payloads(room):
    result = room.run("len?")
    (payload,) = result.done["payloads"]
    assert payload["source"] == "page"
    assert "Return the number of items" in payload["data"]["text/plain"]
    (room.home / "script.py").write_text("answer = 42\n")
    result = room.run("%load script.py")
    (payload,) = result.done["payloads"]
    assert (payload["source"], payload["replace"]) == ("set_next_input", True)
    assert "answer = 42" in payload["text"]


def test_large_frames_pass(room):
    result = room.run("display({'text/plain': 'big', 'text/html': 'h' * 3_000_000}, raw=True)")
    (display,) = result.of("display")
    assert len(display["data"]["text/html"]) == 3_000_000


def test_figures_are_shown_once_at_the_end_of_their_cell(room):
    result = room.run(
        "import matplotlib.pyplot as plt\nplt.figure(); plt.plot([1, 2])\nplt.figure(); _ = plt.plot([2, 1])"
    )
    assert [list(head["data"])[0] for head in result.of("display")].count("image/png") + [
        list(head["data"]) for head in result.of("display")
    ].count(["text/plain", "image/png"]) == 2
    assert room.run("len(plt.get_fignums())").result == "0"


def test_display_flood_is_limited(room):
    result = room.run(
        "data = {'text/plain': '', 'text/html': 'h' * 100_000}\nfor _ in range(100): display(data, raw=True)\nprint('end')",
        limits={"file_bytes": 500_000},
    )
    assert len(result.of("display")) < 25
    assert "DAGGER_KERNEL_FILE_BYTES" in result.stderr
    assert result.stdout == "end\n"


def test_clearing_nothing_is_said_once(room):
    result = room.run(
        "from IPython.display import clear_output\nfor _ in range(50): clear_output()\nprint(1)\nclear_output()"
    )
    assert len(result.of("clear")) == 2


def test_notebook_is_recognised(room):
    result = room.run(
        "import pandas as pd\nfrom pandas.io.formats import console\n"
        "ip = get_ipython()\n[type(ip).__name__, 'IPKernelApp' in ip.config, console.in_ipython_frontend()]"
    )
    assert result.result == "['ZMQInteractiveShell', True, True]"


def test_plotly_figure(room):
    import pytest

    pytest.importorskip("plotly")
    result = room.run("import plotly.graph_objects as go\ngo.Figure(data=[go.Bar(y=[1, 2])])")
    shown = result.of("display") + result.of("result")
    assert any("application/vnd.plotly.v1+json" in head["data"] for head in shown)


def test_c_prints_come_in_their_place(room):
    result = room.run(
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.puts(b'one')\nprint('two')\n"
        "libc.printf(b'three ')\nprint('four')\nlibc.putchar(53)"
    )
    assert result.stdout == "one\ntwo\nthree four\n5"


def test_files_of_c_code_are_written(room):
    room.run(
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.fopen.restype = ctypes.c_void_p\n"
        "file = libc.fopen(b'from-c.txt', b'w')\nlibc.fputs(b'kept', ctypes.c_void_p(file))"
    )
    assert (room.home / "from-c.txt").read_text() == "kept"

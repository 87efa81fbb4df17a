"""The message habits of VS Code's notebooks, as a script: what it sends beside the user's cells."""

import pytest

pytestmark = pytest.mark.usefixtures("data_dir")
HIDDEN = {"silent": False, "store_history": False, "stop_on_error": False, "allow_stdin": True}
"""How it runs code of its own: shown to nobody, not in the history."""


@pytest.fixture(scope="module")
def vscode(data_dir, jupyter_environment, tmp_path_factory):
    """A kernel after VS Code's start."""
    from kernel_client import Kernels

    kernels = Kernels(tmp_path_factory.mktemp("vscode"))
    client = kernels.start("dagger")
    for _ in range(2):  # the second while the first may still be under way
        client.send("kernel_info_request", {})
    assert client.request("kernel_info_request", {}).content["status"] == "ok"
    comms = client.request("comm_info_request", {"target_name": "jupyter.widget"})
    assert comms.content["comms"] == {}
    for code in (
        "import matplotlib\n%matplotlib inline\n_defaults = dict(matplotlib.rcParams)\n",
        "from matplotlib_inline import backend_inline as _b\n"
        "_formats = _b.InlineBackend.instance().figure_formats\n_formats.add('svg')\n"
        "_b.set_matplotlib_formats(*_formats)\ndel _b, _formats",
        "%config Completer.use_jedi = False",
        "if '__vsc_ipynb_file__' not in globals():\n    __vsc_ipynb_file__ = '/Users/ada/my notes/n.ipynb'",
        'import os as _os, sys as _sys\n%cd "/Users/ada/my notes"\n'
        "if _os.getcwd() not in _sys.path:\n    _sys.path.insert(0, _os.getcwd())\ndel _os, _sys",
    ):
        got = client.execute(code, **HIDDEN)
        assert got.content["status"] == "ok", got.outputs
        assert got.content["execution_count"] == 0
    yield client
    kernels.end()


def test_the_users_first_cell_is_number_one(vscode):
    got = vscode.execute("print(__vsc_ipynb_file__)\nimport os; os.getcwd()", allow_stdin=True)
    assert got.content["execution_count"] == 1
    assert got.stdout == "/Users/ada/my notes/n.ipynb\n"
    (value,) = got.of("execute_result")
    assert value["content"]["data"]["text/plain"] == "'/home/sandbox'"


def test_figures_come_in_the_formats_it_set(vscode):
    got = vscode.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    (shown,) = got.of("display_data")
    assert {"image/png", "image/svg+xml"} <= set(shown["content"]["data"])


def test_questions_about_variables_leave_the_count_and_the_history_alone(vscode):
    vscode.execute("frame_rows = 3\nname = 'Ada'")
    before = vscode.execute("pass").content["execution_count"]
    probe = (
        "import json as _json\ndef _describe():\n"
        "    return [{'name': k, 'type': type(v).__name__} for k, v in globals().items() if k[0] != '_']\n"
        "print(_json.dumps(_describe()))\ndel _describe, _json"
    )
    got = vscode.execute(probe, **HIDDEN)
    assert '{"name": "name", "type": "str"}' in got.stdout
    assert got.content["execution_count"] == before
    asked = vscode.execute("", silent=True, user_expressions={"n": "frame_rows", "x": "nosuch"})
    assert asked.content["user_expressions"]["n"]["data"]["text/plain"] == "3"
    assert asked.content["user_expressions"]["x"]["ename"] == "NameError"
    assert asked.of("execute_input", "stream") == []
    assert vscode.execute("pass").content["execution_count"] == before + 1
    query = {"hist_access_type": "tail", "n": 3, "raw": True, "output": False}
    inputs = [entry[2] for entry in vscode.request("history_request", query).content["history"]]
    assert inputs == ["frame_rows = 3\nname = 'Ada'", "pass", "pass"]


def test_a_failing_probe_aborts_nothing(vscode):
    probe = vscode.start("nosuchname", **HIDDEN)
    cell = vscode.start("print('ran')")
    assert vscode.collect(probe).content["status"] == "error"
    assert vscode.collect(cell).stdout == "ran\n"


def test_cells_carry_an_id_and_queue(vscode):
    ids = []
    for number in range(3):
        content = {"code": f"print({number})", "silent": False, "store_history": True,
                   "user_expressions": {}, "allow_stdin": True, "stop_on_error": True}  # fmt: skip
        ids.append(vscode.send("execute_request", content, metadata={"cellId": f"c{number}"}))
    assert [vscode.collect(msg_id).stdout for msg_id in ids] == ["0\n", "1\n", "2\n"]


def test_the_debugger_is_asked_for_and_is_not_there(vscode):
    for command in ("debugInfo", "initialize", "attach"):
        content = {"type": "request", "command": command, "seq": 1, "arguments": {}}
        got = vscode.request("debug_request", content, channel="control")
        assert got.content["success"] is False
    assert vscode.execute("print(1)").stdout == "1\n"


def test_widget_managers_ask_for_states_and_are_closed(vscode):
    content = {"comm_id": "w1", "target_name": "jupyter.widget.control", "data": {}}
    got = vscode.collect(vscode.send("comm_open", content), wants_reply=False)
    assert [m["content"]["comm_id"] for m in got.of("comm_close")] == ["w1"]
    assert got.of("stream") == []


def test_completions_arrive_while_typing(vscode):
    vscode.execute("import collections")
    ids = [
        vscode.send("complete_request", {"code": text, "cursor_pos": len(text)})
        for text in ("collections.O", "collections.Or", "collections.Ord")
    ]
    for msg_id in ids:
        matches = vscode.collect(msg_id).content["matches"]
        assert any(match.endswith("OrderedDict") for match in matches)


def test_interrupt_by_message_and_restart(vscode):
    vscode.execute("kept = 1")
    running = vscode.start("print('begun', flush=True)\nimport time; time.sleep(60)")
    waiting = vscode.start("print('no')")
    while vscode.kc.get_iopub_msg(timeout=20)["msg_type"] != "stream":
        pass
    assert vscode.request("interrupt_request", {}, channel="control").content["status"] == "ok"
    assert vscode.collect(running).content["ename"] == "KeyboardInterrupt"
    assert vscode.collect(waiting).content["status"] == "aborted"
    assert vscode.execute("print(kept)").stdout == "1\n"
    # It ends the process by a request, and starts another one.
    vscode.manager.restart_kernel()
    vscode.kc.wait_for_ready(timeout=60)
    got = vscode.execute("kept")
    assert got.enames == ["NameError"]
    assert got.content["execution_count"] == 1

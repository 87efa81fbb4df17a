"""ipywidgets and tqdm's bars in a sandbox: live while the cell runs, with a fallback and a clean end after it."""

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.usefixtures("data_dir")
VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def python(data_dir, jupyter_environment, tmp_path_factory):
    """A kernel whose sandbox has ipywidgets and tqdm."""
    from kernel_client import Kernels

    kernels = Kernels(tmp_path_factory.mktemp("widgets"))
    kernel = kernels.start("dagger")
    got = kernel.execute("%pip install -q ipywidgets tqdm", timeout=180)
    if kernel.execute("import ipywidgets, tqdm").content["status"] != "ok":
        kernels.end()
        pytest.skip(f"ipywidgets cannot be installed: {got.stderr[-300:]}")
    yield kernel
    kernels.end()


def states(got):
    """Return the states that the cell's widgets ended with, by comm id."""
    found = {}
    for message in got.of("comm_open", "comm_msg"):
        data = message["content"]["data"]
        found.setdefault(message["content"]["comm_id"], {}).update(data.get("state", {}))
    return found


def test_a_widget_is_displayed_with_a_fallback_and_updated_by_its_cell(python):
    got = python.execute(
        "import ipywidgets as w\nbar = w.IntProgress(max=3)\ndisplay(bar)\n"
        "for bar.value in (1, 2, 3): pass"
    )
    (shown,) = got.of("display_data")
    assert shown["content"]["data"]["text/plain"].startswith("IntProgress(")
    model = shown["content"]["data"][VIEW]["model_id"]
    assert states(got)[model]["value"] == 3
    assert len(got.of("comm_msg")) == 3


def test_an_output_widget_takes_what_is_printed_in_it(python):
    got = python.execute(
        "out = w.Output()\nprint('before')\nwith out:\n    print('inside')\nprint('after')"
    )
    kinds = [m["msg_type"] for m in got.of("stream", "comm_msg")]
    assert kinds == ["stream", "comm_msg", "stream", "comm_msg", "stream"]
    ids = [m["content"]["data"]["state"]["msg_id"] for m in got.of("comm_msg")]
    assert ids == [got.reply["parent_header"]["msg_id"], ""]


def test_an_error_in_an_output_widget_is_shown_there(python):
    got = python.execute("with out:\n    1 / 0\nprint('on')")
    assert got.enames == ["ZeroDivisionError"]
    assert got.content["status"] == "ok"
    assert got.stdout == "on\n"


def test_interact(python):
    got = python.execute("w.interact(lambda x: print('x is', x), x=(0, 5));")
    kinds = [m["msg_type"] for m in got.of("display_data", "stream", "clear_output")]
    assert "display_data" in kinds
    assert any("x is 2" in m["content"]["text"] for m in got.of("stream"))
    request = got.reply["parent_header"]["msg_id"]
    changes = [m["content"]["data"].get("state", {}) for m in got.of("comm_msg")]
    sent = [change["msg_id"] for change in changes if "msg_id" in change]
    assert (sent[0], sent[-1]) == (request, "")


def test_events_reach_the_widget_while_its_cell_runs(python):
    msg_id = python.start(
        "import asyncio\nslider, moved = w.IntSlider(), asyncio.Event()\n"
        "slider.observe(lambda change: moved.set(), 'value')\ndisplay(slider)\n"
        "await asyncio.wait_for(moved.wait(), 20)\nprint(slider.value)"
    )
    while (message := python.kc.get_iopub_msg(timeout=20))["msg_type"] != "display_data":
        pass
    model = message["content"]["data"][VIEW]["model_id"]
    update = {"method": "update", "state": {"value": 42}, "buffer_paths": []}
    python.send("comm_msg", {"comm_id": model, "data": update})
    assert python.collect(msg_id).stdout == "42\n"


def test_a_later_cell_goes_on_with_a_widget(python):
    python.execute("kept = w.IntSlider()\nseen = []\nkept")
    msg_id = python.start(
        "moved = asyncio.Event()\nkept.observe(lambda change: moved.set(), 'value')\nkept.max = 200\n"
        "await asyncio.wait_for(moved.wait(), 20)\nprint(kept.value)"
    )
    while (message := python.kc.get_iopub_msg(timeout=20))["msg_type"] != "comm_msg":
        pass
    update = {"method": "update", "state": {"value": 42}, "buffer_paths": []}
    python.send("comm_msg", {"comm_id": message["content"]["comm_id"], "data": update})
    assert python.collect(msg_id).stdout == "42\n"
    got = python.execute("kept.close()")
    assert got.content["status"] == "ok"
    assert got.of("comm_close")


def test_an_event_after_the_cell_is_closed_with_one_line_of_reason(python):
    got = python.execute("late = w.IntSlider()\nlate")
    model = got.of("execute_result")[0]["content"]["data"][VIEW]["model_id"]
    update = {"method": "update", "state": {"value": 1}, "buffer_paths": []}
    ids = [python.send("comm_msg", {"comm_id": model, "data": update}) for _ in range(3)]
    events = [python.collect(msg_id, wants_reply=False) for msg_id in ids]
    closed = [m["content"]["comm_id"] for event in events for m in event.of("comm_close")]
    assert set(closed) == {model}
    reasons = [event.stderr for event in events]
    assert "cell has ended" in reasons[0]
    assert reasons[1:] == ["", ""]
    assert (
        python.execute("late.value").of("execute_result")[0]["content"]["data"]["text/plain"] == "0"
    )


def test_notebook_bars_move_while_the_cell_runs(python):
    msg_id = python.start(
        "import time\nfrom tqdm.notebook import tqdm\n"
        "for i in tqdm(range(4), mininterval=0):\n    time.sleep(0.5)"
    )
    before = []
    value = None
    while value != 1:
        message = python.kc.get_iopub_msg(timeout=20)
        before.append(message["msg_type"])
        value = message["content"].get("data", {}).get("state", {}).get("value")
    assert "display_data" in before
    assert "idle" not in before
    got = python.collect(msg_id)
    assert max(s["value"] for s in states(got).values() if isinstance(s.get("value"), float)) == 4
    assert got.stderr == ""


def test_nbclient_keeps_what_an_output_widget_took(python, tmp_path):
    """As a converter does: the widget's output is in its state, not in the cell's."""
    made = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(text)
            for text in (
                "%pip install -q ipywidgets",
                "import ipywidgets as w\nout = w.Output()\nout",
                "with out:\n    print('inside')\nprint('outside')",
            )
        ]
    )
    client = NotebookClient(
        made, kernel_name="dagger", resources={"metadata": {"path": str(tmp_path)}}, timeout=180
    )
    client.execute()
    assert [o["text"] for o in made.cells[2].outputs] == ["outside\n"]
    widgets = made.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    outputs = [item["state"]["outputs"] for item in widgets.values() if "outputs" in item["state"]]
    assert [[o["text"] for o in one] for one in outputs] == [["inside\n"]]

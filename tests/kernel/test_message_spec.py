"""Every message of the protocol, on the real kernel, validated against its schema.

The client validates whatever it receives, in all tests here; this one makes sure that everything there is
was received, error paths included.
"""

import pytest
from kernel_schemas import IOPUB, OK_REPLIES

pytestmark = pytest.mark.usefixtures("data_dir")

NOT_TO_CLIENTS = {"iopub_welcome", "shutdown_reply"}


def test_every_message_kind(start_kernel):
    client = start_kernel("dagger")
    python = client.execute
    python("import sys; print('out'); print('err', file=sys.stderr); 1 + 1")
    python("1 / 0")
    python("x = 20", user_expressions={"good": "x", "bad": "x / 0"})
    python("print?")
    python("get_ipython().set_next_input('y = 1')")
    python("x", silent=True)
    python("")
    python(
        "from IPython.display import display, clear_output\n"
        "h = display('a', display_id=True); h.update('b'); clear_output(wait=True)"
    )
    python("input('q? ')", allow_stdin=True, answers=["a"])
    python("input('q? ')")
    python("%sandbox")
    python("%sandbox nonsense")
    python(
        "from comm import create_comm\n"
        "c = create_comm(target_name='t', data={'a': 1}); c.send({'b': 2}); c.close()"
    )
    client.collect(
        client.send("comm_open", {"comm_id": "z", "target_name": "nobody", "data": {}}),
        wants_reply=False,
    )
    failing, queued = client.start("1 / 0"), client.start("print('no')")
    client.collect(failing)
    client.collect(queued)
    client.request("execute_request", {})
    for channel in ("shell", "control"):
        for kind, content in (
            ("kernel_info", {}),
            ("connect", {}),
            ("comm_info", {}),
            ("complete", {"code": "pri", "cursor_pos": 3}),
            ("inspect", {"code": "print", "cursor_pos": 3}),
            ("is_complete", {"code": "for x in y:"}),
            ("is_complete", {"code": "1"}),
            ("history", {"hist_access_type": "tail", "n": 5, "output": True, "raw": True}),
            ("history", {"hist_access_type": "search", "pattern": "*", "n": 5, "unique": True}),
        ):
            client.request(f"{kind}_request", content, channel=channel)
    for kind, content in (
        ("interrupt", {}),
        ("usage", {}),
        ("debug", {"command": "initialize", "seq": 1, "type": "request"}),
        ("create_subshell", {}),
        ("delete_subshell", {"subshell_id": "x"}),
        ("list_subshell", {}),
        ("execute", {"code": "1"}),
    ):
        client.request(f"{kind}_request", content, channel="control")

    seen = {kind for _, kind, _ in client.seen}
    assert set(OK_REPLIES) | set(IOPUB) | {"input_request"} <= seen | NOT_TO_CLIENTS
    statuses = {status for channel, kind, status in client.seen if kind == "execute_reply"}
    assert statuses == {"ok", "error", "aborted"}

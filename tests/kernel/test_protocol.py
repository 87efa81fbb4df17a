"""Every request but execute: replies, channels, error paths."""

import json
import os
import signal
import time

import pytest


def test_kernel_info_is_honest_and_on_both_channels(scripted):
    for channel in ("shell", "control"):
        content = scripted.request("kernel_info_request", {}, channel=channel).content
        assert content["status"] == "ok"
        assert content["protocol_version"] == "5.5"
        assert content["implementation"] == "dagger_kernel"
        assert content["supported_features"] == []
        assert content["language_info"]["name"] == "python"
        assert content["language_info"]["file_extension"] == ".py"
        assert content["banner"]


def test_the_bash_kernel_says_so(start_kernel):
    info = start_kernel("scripted-bash").request("kernel_info_request", {}).content
    assert info["language_info"]["name"] == "bash"
    assert info["language_info"]["file_extension"] == ".sh"


def test_kernel_info_needs_no_log(start_kernel):
    client = start_kernel("scripted", DAGGER_KERNEL_DATABASE_URL="broken://")
    assert client.request("kernel_info_request", {}).content["status"] == "ok"


def test_control_answers_while_a_cell_runs(scripted):
    msg_id = scripted.start("await asyncio.sleep(1.5)")
    time.sleep(0.2)
    for kind in ("kernel_info_request", "usage_request", "comm_info_request", "connect_request"):
        begin = time.monotonic()
        got = scripted.request(kind, {}, channel="control")
        assert got.content["status"] == "ok"
        assert time.monotonic() - begin < 0.8
    assert scripted.collect(msg_id).content["status"] == "ok"


def test_usage_tells_of_the_sandbox(scripted):
    scripted.execute("pass")
    content = scripted.request("usage_request", {}, channel="control").content
    assert content["hostname"]
    assert content["dagger_kernel"]["engine"] == "scripted"


def test_completion_and_inspection(scripted):
    content = scripted.request("complete_request", {"code": "import sc", "cursor_pos": 9}).content
    assert content["matches"] == ["scripted_name"]
    assert (content["cursor_start"], content["cursor_end"]) == (7, 9)
    content = scripted.request("inspect_request", {"code": "x", "cursor_pos": 1}).content
    assert content["found"] is True


def test_completion_without_an_answer_is_empty_and_in_time(scripted):
    begin = time.monotonic()
    scripted.request("complete_request", {"code": "x", "cursor_pos": 1})
    begin = time.monotonic()
    content = scripted.request("complete_request", {"code": "slow", "cursor_pos": 4}).content
    assert content == {
        "status": "ok",
        "matches": [],
        "cursor_start": 4,
        "cursor_end": 4,
        "metadata": {},
    }
    assert time.monotonic() - begin < 5
    # After a wait in vain the next one is short: cells of the user wait behind it.
    begin = time.monotonic()
    scripted.request("complete_request", {"code": "slow", "cursor_pos": 4})
    assert time.monotonic() - begin < 2


@pytest.mark.parametrize("content", [{}, {"code": "x"}, {"code": "x", "cursor_pos": 99}])
def test_sloppy_questions_get_replies(scripted, content):
    if content:
        for kind in ("complete_request", "inspect_request"):
            assert scripted.request(kind, content).content["status"] == "ok"
    assert scripted.request("is_complete_request", content).content["status"]
    assert scripted.request("history_request", content).content["status"] == "ok"
    assert scripted.request("comm_info_request", content).content["status"] == "ok"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("x = 1", "complete"),
        ("for i in range(3):", "incomplete"),
        ("x = (1,", "incomplete"),
        ("x = )", "invalid"),
        ("%%bash\necho hi", "incomplete"),
        ("!ls", "complete"),
    ],
)
def test_is_complete_python(scripted, code, status):
    content = scripted.request("is_complete_request", {"code": code}).content
    assert content["status"] == status
    if code.startswith("for"):
        assert content["indent"] == "    "


def test_is_complete_bash(start_kernel):
    client = start_kernel("scripted-bash")
    wanted = {
        "echo hi": "complete",
        "for i in 1 2; do": "incomplete",
        "echo 'open": "incomplete",
        "echo a \\": "incomplete",
        "cat <<EOF\nx": "incomplete",
        "fi": "invalid",
        "if true; then echo; done": "invalid",
    }
    for code, status in wanted.items():
        content = client.request("is_complete_request", {"code": code}).content
        assert (code, content["status"]) == (code, status)


def test_history(scripted):
    for code in ("a = 1", "b = 2"):
        scripted.execute(code)
    query = {"hist_access_type": "tail", "n": 2, "output": False, "raw": True, "unknown": 1}
    assert scripted.request("history_request", query).content["history"] == [
        [1, 1, "a = 1"],
        [1, 2, "b = 2"],
    ]
    query["output"] = True
    assert scripted.request("history_request", query).content["history"][0] == [
        1, 1, ["a = 1", None],
    ]  # fmt: skip


def test_history_of_a_broken_log_is_an_error_reply(start_kernel):
    client = start_kernel("scripted", DAGGER_KERNEL_DATABASE_URL="broken://")
    content = client.request("history_request", {"hist_access_type": "tail"}).content
    assert content["status"] == "error"
    assert content["ename"] == "LogUnavailableError"


def test_what_is_not_offered_is_refused(scripted):
    for kind in ("create_subshell_request", "delete_subshell_request", "list_subshell_request"):
        got = scripted.request(kind, {"subshell_id": "x"}, channel="control")
        assert got.content["status"] == "error"
    got = scripted.request("debug_request", {"command": "initialize", "seq": 3}, channel="control")
    assert got.content["success"] is False
    assert got.content["request_seq"] == 3
    got = scripted.collect(
        scripted.send("execute_request", {"code": "pass"}, header={"subshell_id": "no"})
    )
    assert got.content["status"] == "error"


def test_an_unknown_message_type_does_no_harm(scripted):
    msg_id = scripted.send("no_such_request", {})
    assert scripted.collect(msg_id, wants_reply=False).states == ["busy", "idle"]
    assert scripted.execute("pass").content["status"] == "ok"


# -- interrupts


def test_an_interrupt_ends_the_cell_and_not_the_kernel(scripted):
    msg_id = scripted.start("await interrupted.wait()\nend('interrupted')")
    time.sleep(0.3)
    begin = time.monotonic()
    assert scripted.request("interrupt_request", {}, channel="control").content["status"] == "ok"
    got = scripted.collect(msg_id)
    assert got.content["ename"] == "KeyboardInterrupt"
    assert time.monotonic() - begin < 1
    assert scripted.execute("pass").content["status"] == "ok"


def test_an_idle_interrupt_is_a_quiet_no_op(scripted):
    for _ in range(3):
        scripted.manager.interrupt_kernel()
    got = scripted.execute(
        "await asyncio.sleep(0.3)\nend('ok' if not interrupted.is_set() else 'error')"
    )
    assert got.content["status"] == "ok"


def test_stray_signals_do_not_end_the_process(scripted):
    pid = scripted.manager.provisioner.pid
    os.kill(pid, signal.SIGINT)
    time.sleep(0.2)
    msg_id = scripted.start("await interrupted.wait()\nend('interrupted')")
    time.sleep(0.3)
    os.kill(pid, signal.SIGINT)
    assert scripted.collect(msg_id).content["ename"] == "KeyboardInterrupt"
    assert scripted.manager.is_alive()


def test_sigterm_ends_the_process_in_order(start_kernel):
    scripted = start_kernel()
    os.kill(scripted.manager.provisioner.pid, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while scripted.manager.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_shutdown_is_answered_and_ends_the_process(start_kernel):
    scripted = start_kernel()
    got = scripted.send("shutdown_request", {"restart": False}, channel="control")
    while True:
        message = scripted.kc.get_control_msg(timeout=10)
        if message["parent_header"]["msg_id"] == got:
            break
    assert message["content"] == {"status": "ok", "restart": False}
    deadline = time.monotonic() + 10
    while scripted.manager.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_shutdown_on_the_shell_channel(start_kernel):
    scripted = start_kernel()
    msg_id = scripted.send("shutdown_request", {"restart": False})
    while True:
        message = scripted.kc.get_shell_msg(timeout=10)
        if message["parent_header"]["msg_id"] == msg_id:
            break
    assert message["content"]["status"] == "ok"


def test_a_restart_begins_anew(start_kernel):
    scripted = start_kernel()
    scripted.execute("pass")
    scripted.manager.restart_kernel()
    scripted.kc.wait_for_ready(timeout=30)
    got = scripted.execute("pass")
    assert got.content["execution_count"] == 1


# -- stdin


def test_a_question_goes_to_the_client_and_back(scripted):
    got = scripted.execute(
        "emit('stream', name='stdout', text=await ask('name? ', False) + await ask('pw', True))",
        allow_stdin=True,
        answers=["Ada", "s3cret"],
    )
    assert got.stdout == "Adas3cret"
    prompts = [(m["content"]["prompt"], m["content"]["password"]) for m in got.inputs]
    assert prompts == [("name? ", False), ("pw", True)]


def test_a_question_is_refused_when_the_client_takes_none(scripted):
    got = scripted.execute("await ask('name? ', False)")
    assert got.content["status"] == "error"
    assert "does not support input requests" in got.content["evalue"]


def test_an_interrupt_while_waiting_for_input(scripted):
    msg_id = scripted.start(
        "question = asyncio.ensure_future(ask('x', False))\n"
        "await interrupted.wait()\nquestion.cancel()\nend('interrupted')",
        allow_stdin=True,
    )
    scripted.kc.get_stdin_msg(timeout=10)
    scripted.manager.interrupt_kernel()
    assert scripted.collect(msg_id).content["ename"] == "KeyboardInterrupt"
    # A late answer is dropped; the next question gets its own.
    scripted.kc.input("late")
    time.sleep(0.2)
    got = scripted.execute(
        "emit('stream', name='stdout', text=await ask('y', False))",
        allow_stdin=True,
        answers=["fresh"],
    )
    assert got.stdout == "fresh"


def test_end_of_input(scripted):
    got = scripted.execute("await ask('x', False)", allow_stdin=True, answers=["\x04"])
    assert got.content["ename"] == "EOFError"


# -- comms


def test_comms_of_a_cell_travel_both_ways(scripted):
    msg_id = scripted.start(
        "emit('comm', msg_type='comm_open', buffers=1, body=b'\\0\\0\\0\\2hi', content={"
        "'comm_id': 'c1', 'target_name': 'jupyter.widget', 'data': {'a': 1}})\n"
        "while not comms: await asyncio.sleep(0.01)\n"
        "message, buffers = comms[0]\n"
        "emit('stream', name='stdout', text=f'{message[\"msg_type\"]} {message[\"content\"]} {buffers}')"
    )
    while True:
        message = scripted.kc.get_iopub_msg(timeout=10)
        if message["msg_type"] == "comm_open":
            break
    assert message["content"]["target_name"] == "jupyter.widget"
    assert [bytes(part) for part in message["buffers"]] == [b"hi"]
    info = scripted.request("comm_info_request", {}, channel="control").content
    assert info["comms"] == {"c1": {"target_name": "jupyter.widget"}}
    event = scripted.kc.session.msg("comm_msg", {"comm_id": "c1", "data": {"method": "x"}})
    scripted.kc.session.send(scripted.kc.shell_channel.socket, event, buffers=[b"raw"])
    got = scripted.collect(msg_id)
    assert "comm_msg" in got.stdout
    assert "raw" in got.stdout
    assert scripted.request("comm_info_request", {}).content["comms"] == {}


def test_an_event_after_the_cell_gets_a_close_and_a_reason_once(scripted):
    scripted.execute(
        "emit('comm', msg_type='comm_open', buffers=0,"
        " content={'comm_id': 'c1', 'target_name': 'jupyter.widget', 'data': {}})"
    )
    first = scripted.collect(
        scripted.send("comm_msg", {"comm_id": "c1", "data": {}}), wants_reply=False
    )
    assert first.of("comm_close")[0]["content"]["comm_id"] == "c1"
    assert "Run the cell again" in first.stderr
    second = scripted.collect(
        scripted.send("comm_msg", {"comm_id": "c1", "data": {}}), wants_reply=False
    )
    assert second.of("comm_close") == []  # a client would complain of a comm it does not know
    assert second.of("stream") == []


def test_an_unknown_target_is_closed_at_once(scripted):
    got = scripted.collect(
        scripted.send("comm_open", {"comm_id": "c9", "target_name": "nobody", "data": {}}),
        wants_reply=False,
    )
    assert got.of("comm_close")[0]["content"]["comm_id"] == "c9"
    assert got.of("stream") == []
    late = scripted.collect(
        scripted.send("comm_msg", {"comm_id": "c9", "data": {}}), wants_reply=False
    )
    assert late.of("comm_close") == []


# -- several clients, and the process's own output


def test_two_clients_on_one_kernel(scripted, kernels):
    second = kernels.connect(scripted)
    a = scripted.start("await asyncio.sleep(0.5)\nemit('stream', name='stdout', text='A')")
    while scripted.kc.get_iopub_msg(timeout=20)["msg_type"] != "execute_input":
        pass  # two sockets: the second cell could overtake the first
    b = second.start(
        "emit('stream', name='stdout', text=await ask('for B', False))", allow_stdin=True
    )
    first = scripted.collect(a)
    got = second.collect(b, answers=["B!"])
    assert first.stdout == "A"
    assert first.inputs == []
    assert got.stdout == "B!"
    assert got.content["execution_count"] == 2


def test_nothing_of_the_kernel_process_lands_in_a_cell(scripted):
    got = scripted.execute(
        "import logging, os, sys, warnings, subprocess\n"
        "logging.getLogger('somebody').error('log record')\n"
        "warnings.warn('a warning')\n"
        "print('print')\nprint('err', file=sys.stderr)\nos.write(2, b'fd two')\n"
        "subprocess.run(['sh', '-c', 'echo child >&2'])"
    )
    assert got.outputs == []


def test_signatures_are_checked(scripted):
    key = scripted.kc.session.key
    scripted.kc.session.key = b"wrong"
    scripted.start("emit('stream', name='stdout', text='no')")
    scripted.kc.session.key = key
    got = scripted.execute("emit('stream', name='stdout', text='yes')")
    assert got.stdout == "yes"
    assert got.content["execution_count"] == 1
    json.dumps(got.content)

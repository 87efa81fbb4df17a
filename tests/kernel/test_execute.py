"""execute_request: one reply on every path, output in order, nothing left behind."""

import time

import pytest


def test_a_cell_has_input_output_and_one_reply(scripted):
    got = scripted.execute("emit('stream', name='stdout', text='hello\\n')")
    assert got.replies == 1
    assert got.content["status"] == "ok"
    assert got.content["execution_count"] == 1
    assert got.states == ["busy", "idle"]
    kinds = [m["msg_type"] for m in got.iopub]
    assert kinds == ["status", "execute_input", "stream", "status"]
    assert got.of("execute_input")[0]["content"]["execution_count"] == 1


def test_result_and_display_keep_their_order_with_text(scripted):
    got = scripted.execute(
        "emit('stream', name='stdout', text='a')\n"
        "emit('display', data={'text/plain': 'D'}, metadata={}, transient={}, update=False)\n"
        "emit('stream', name='stdout', text='b')\n"
        "emit('result', data={'text/plain': 'R'}, metadata={}, execution_count=1)"
    )
    kinds = [m["msg_type"] for m in got.outputs]
    assert kinds == ["stream", "display_data", "stream", "execute_result"]
    assert got.outputs[-1]["content"]["execution_count"] == 1


def test_neighbouring_text_travels_together(scripted):
    got = scripted.execute(
        "for i in range(2000): emit('stream', name='stdout', text=f'{i}\\n')", timeout=20
    )
    assert got.stdout == "".join(f"{i}\n" for i in range(2000))
    assert len(got.of("stream")) < 50


def test_text_is_live(scripted):
    msg_id = scripted.start(
        "emit('stream', name='stdout', text='now')\nawait asyncio.sleep(1.5)\n"
        "emit('stream', name='stdout', text='later')"
    )
    begin = time.monotonic()
    while True:
        message = scripted.kc.get_iopub_msg(timeout=5)
        if message["msg_type"] == "stream":
            break
    assert time.monotonic() - begin < 1.0
    scripted.collect(msg_id)


def test_an_error_of_the_cell_is_output_and_reply(scripted):
    got = scripted.execute(
        "emit('error', ename='ValueError', evalue='bad', traceback=['t1', 't2'])\nend('error')"
    )
    assert got.content["status"] == "error"
    assert got.content["ename"] == "ValueError"
    assert got.content["traceback"] == ["t1", "t2"]
    assert got.enames == ["ValueError"]
    assert got.content["execution_count"] == 1


def test_an_error_that_the_users_handler_took_is_told_in_the_reply_only(scripted):
    got = scripted.execute(
        "emit('error', ename='KeyError', evalue='1', traceback=[], handled=True)\nend('error')"
    )
    assert (got.content["status"], got.content["ename"]) == ("error", "KeyError")
    assert got.content["traceback"] == []
    assert got.outputs == []


@pytest.mark.parametrize(
    ("code", "ename"),
    [
        ("raise errors.EngineConnectionError('No answer.')", "EngineConnectionError"),
        ("raise errors.CapacityError(10, 50)", "CapacityError"),
        ("raise InterruptedByUser()", "KeyboardInterrupt"),
        ("raise KeyError('a fault of ours')", "KeyError"),
        ("raise asyncio.CancelledError()", "KeyboardInterrupt"),
        ("end('limit', reason='wall')", "LimitExceeded"),
        ("end('interrupted')", "KeyboardInterrupt"),
        ("end('error', exit_code=-11)", "CellDied"),
    ],
)
def test_every_failure_ends_in_one_error_reply(scripted, code, ename):
    got = scripted.execute(code)
    assert got.replies == 1
    assert got.content["status"] == "error"
    assert got.content["ename"] == ename
    assert got.enames == [ename]
    after = scripted.execute("emit('stream', name='stdout', text='alive')")
    assert after.stdout == "alive"
    scripted.log.seek(0)


def test_a_log_that_cannot_be_opened_is_an_error_of_the_cell(start_kernel):
    client = start_kernel("scripted", DAGGER_KERNEL_DATABASE_URL="broken://")
    for _ in range(2):
        got = client.execute("pass")
        assert got.content["status"] == "error"
        assert got.enames == ["LogUnavailableError"]
    assert client.request("kernel_info_request", {}).content["status"] == "ok"


def test_an_interrupt_while_the_log_is_opened(start_kernel):
    client = start_kernel("scripted", DAGGER_KERNEL_DATABASE_URL="hanging://")
    msg_id = client.start("pass")
    time.sleep(0.5)
    client.manager.interrupt_kernel()
    got = client.collect(msg_id, timeout=10)
    assert got.enames == ["KeyboardInterrupt"]


def test_code_that_is_not_unicode_gets_a_reply(scripted):
    session = scripted.kc.session
    message, pack = session.msg("execute_request", {"code": "x = 'PLACE'"}), session.pack
    session.pack = lambda value: pack(value).replace(b"PLACE", b"\\ud800")
    try:
        scripted.kc.shell_channel.send(message)
    finally:
        session.pack = pack
    got = scripted.collect(message["header"]["msg_id"])
    assert got.replies == 1
    assert got.of("execute_input")[0]["content"]["code"] == "x = '\\ud800'"


def test_a_bad_setting_is_an_error_of_the_cell(start_kernel):
    client = start_kernel("scripted", DAGGER_KERNEL_CPU_SECONDS="many")
    got = client.execute("pass")
    assert got.enames == ["SettingError"]


def test_counting(scripted):
    assert scripted.execute("pass").content["execution_count"] == 1
    silent = scripted.execute("emit('stream', name='stdout', text='x')", silent=True)
    assert silent.content["execution_count"] == 1
    assert silent.of("execute_input", "stream") == []
    unstored = scripted.execute("pass", store_history=False)
    assert unstored.content["execution_count"] == 1
    assert unstored.of("execute_input")[0]["content"]["execution_count"] == 2
    blank = scripted.execute("  \n")
    assert blank.content["status"] == "ok"
    assert blank.content["execution_count"] == 1
    assert scripted.execute("pass").content["execution_count"] == 2


def test_a_silent_failure_is_told_in_the_reply_only(scripted):
    got = scripted.execute("raise errors.CapacityError(1, 1)", silent=True)
    assert got.content["status"] == "error"
    assert got.outputs == []
    # and does not stop others
    assert scripted.execute("pass").content["status"] == "ok"


def test_cells_queued_behind_an_error_are_aborted_and_later_ones_run(scripted):
    first = scripted.start("await asyncio.sleep(0.3)\nraise errors.CapacityError(1, 1)")
    queued = [scripted.start("emit('stream', name='stdout', text='no')") for _ in range(3)]
    keep = scripted.send("kernel_info_request", {})
    answers = {first: None, **dict.fromkeys(queued), keep: None}
    seen = _collect_all(scripted, answers)
    assert seen[first]["content"]["status"] == "error"
    for msg_id in queued:
        assert seen[msg_id]["content"]["status"] == "aborted"
        assert seen[msg_id]["content"]["execution_count"] == 1
    assert seen[keep]["content"]["status"] == "ok"
    later = scripted.execute("emit('stream', name='stdout', text='yes')")
    assert later.stdout == "yes"
    assert later.content["execution_count"] == 2


def test_stop_on_error_false_lets_the_queue_run(scripted):
    first = scripted.start("raise errors.CapacityError(1, 1)", stop_on_error=False)
    second = scripted.start("pass")
    seen = _collect_all(scripted, {first: None, second: None})
    assert seen[second]["content"]["status"] == "ok"


def _collect_all(client, wanted):
    while any(reply is None for reply in wanted.values()):
        message = client.kc.get_shell_msg(timeout=20)
        parent = message["parent_header"]["msg_id"]
        if parent in wanted:
            wanted[parent] = message
    return wanted


@pytest.mark.parametrize(
    "content",
    [{}, {"code": 5}, {"code": None}, {"code": "pass", "user_expressions": ["x"]}],
)
def test_a_malformed_request_gets_an_error_reply(scripted, content):
    got = scripted.request("execute_request", content)
    assert got.content["status"] == "error"
    assert "execution_count" in got.content


def test_null_metadata_and_unknown_fields_are_tolerated(scripted):
    message = scripted.kc.session.msg("execute_request", {"code": "pass", "unheard_of": 1})
    message["metadata"] = None
    scripted.kc.shell_channel.send(message)
    assert scripted.collect(message["header"]["msg_id"]).content["status"] == "ok"


def test_execute_on_the_control_channel_is_refused(scripted):
    got = scripted.request("execute_request", {"code": "pass"}, channel="control")
    assert got.content["status"] == "error"


def test_unencodable_text_becomes_visible(scripted):
    got = scripted.execute(
        "emit('stream', name='stdout', text='a' + chr(0xd8ff) + chr(0) + 'b')\n"
        "emit('error', ename='E', evalue=chr(0xdc00), traceback=[chr(0xdc00)])\nend('error')"
    )
    assert got.stdout == "a\\ud8ff\0b"
    assert got.content["evalue"] == "\\udc00"


def test_user_expressions_payload_and_next_input_travel(scripted):
    got = scripted.execute(
        "end('ok', user_expressions={'x': {'status': 'ok', 'data': {}, 'metadata': {}}},"
        " payloads=[{'source': 'page', 'data': {'text/plain': 'p'}, 'start': 0},"
        " {'source': 'unknown'}, {'source': 'set_next_input', 'text': 'more', 'replace': False}])"
    )
    assert got.content["user_expressions"]["x"]["status"] == "ok"
    sources = [item["source"] for item in got.content["payload"]]
    assert sources == ["page", "set_next_input"]


def test_expressions_alone_do_not_count(scripted):
    scripted.execute("pass")
    for _ in range(2):
        got = scripted.execute("", user_expressions={"x": "1"})
        assert got.content["execution_count"] == 1
        assert got.reply["metadata"]["dagger_kernel"]["step"] is None
    assert scripted.execute("pass").content["execution_count"] == 2


def test_only_expressions_run_without_a_step(scripted):
    got = scripted.execute("", silent=True, user_expressions={"x": "1"})
    assert got.content["status"] == "ok"
    assert got.reply["metadata"]["dagger_kernel"]["step"] is None


def test_reply_metadata_tells_the_step(scripted):
    got = scripted.execute(
        "export('a.csv', b'a,b\\n', 'text/csv')\n"
        "drift('step 3 printed something else')\n"
        "end('ok', usage={'cpu_seconds': 0.1}, state={'saved': ['x']})"
    )
    told = got.reply["metadata"]["dagger_kernel"]
    assert told["seq"] == 1
    assert told["key"] == "k" * 64
    assert told["sandbox"].startswith("scripted-")
    assert told["files"][0]["path"] == "a.csv"
    assert told["usage"] == {"cpu_seconds": 0.1}
    assert told["state"] == {"saved": ["x"]}
    assert told["drift"] == ["step 3 printed something else"]


def test_the_cell_id_reaches_the_sandbox(scripted):
    msg_id = scripted.send(
        "execute_request",
        {"code": "emit('stream', name='stdout', text=cell.cell_id)"},
        metadata={"cellId": "abc"},
    )
    assert scripted.collect(msg_id).stdout == "abc"


# -- progress


def test_short_work_shows_no_progress(scripted):
    got = scripted.execute(
        "emit('progress', text='replaying 1/2')\nemit('progress', text='')\n"
        "emit('stream', name='stdout', text='x')"
    )
    assert got.of("display_data", "clear_output") == []


def test_long_work_shows_progress_that_goes(scripted):
    got = scripted.execute(
        "for i in range(8):\n"
        "    emit('progress', text=f'replaying {i}/8')\n"
        "    await asyncio.sleep(0.2)\n"
        "emit('progress', text='')\n"
        "emit('stream', name='stdout', text='x')"
    )
    shown = got.of("display_data", "update_display_data")
    assert shown[0]["msg_type"] == "display_data"
    assert len(shown) > 2
    assert "replaying" in shown[0]["content"]["data"]["text/plain"]
    assert [m["msg_type"] for m in got.outputs] == ["stream"]


def test_progress_without_output_leaves_nothing(scripted):
    got = scripted.execute("emit('progress', text='building')\nawait asyncio.sleep(0.8)")
    assert got.of("display_data") != []
    assert got.outputs == []


def test_progress_gives_way_to_the_first_output(scripted):
    got = scripted.execute(
        "emit('progress', text='queue')\nawait asyncio.sleep(0.8)\n"
        "emit('stream', name='stdout', text='x')\n"
        "emit('progress', text='late')\nawait asyncio.sleep(0.8)"
    )
    kinds = [m["msg_type"] for m in got.iopub if m["msg_type"] != "status"]
    assert kinds == ["execute_input", "display_data", "clear_output", "stream"]


def test_progress_then_error_leaves_the_error(scripted):
    got = scripted.execute(
        "emit('progress', text='building')\nawait asyncio.sleep(0.8)\n"
        "raise errors.BaseBuildError('No network.')"
    )
    assert got.enames == ["BaseBuildError"]
    assert [m["msg_type"] for m in got.outputs] == ["error"]


# -- frames are not trusted


def test_forged_frames_stay_output_of_their_cell(scripted):
    got = scripted.execute(
        "emit('comm', msg_type='status', content={'execution_state': 'idle'}, buffers=0)\n"
        "emit('comm', msg_type='shutdown_reply', content={}, buffers=0)\n"
        "emit('comm', msg_type='comm_open', content='x', buffers=10**9)\n"
        "emit('status', execution_state='idle')\n"
        "emit('stream', name='status', text='text')\n"
        "emit('stream')\n"
        "emit('display', data='x', metadata=3, transient='y')\n"
        "emit('display', data={'not a mime': 1, 'text/plain': 'ok'}, update=True)\n"
        "emit('result', data={'text/plain': 'r'}, execution_count=-5)\n"
        "emit('error', traceback='x')\n"
        "emit('clear', wait='maybe')\n"
        "emit('nonsense')\n"
        "end('ok', user_expressions={'a': 5, 'b': {'status': 'ok', 'data': []}},"
        " payloads=[5, {'source': 'evil'}])"
    )
    assert got.states == ["busy", "idle"]
    assert got.replies == 1
    assert got.content["payload"] == []
    assert got.content["user_expressions"]["a"]["status"] == "error"
    assert got.of("execute_result")[0]["content"]["execution_count"] == 1

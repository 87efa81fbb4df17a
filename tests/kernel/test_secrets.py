"""``%sandbox secret`` in a real kernel on the local engine."""

from __future__ import annotations

import pytest

VALUE = "tok-5up3r/s3cr3t+w0rd"
LENGTH = "import os; print(len(os.environ.get('API_KEY', '')))"


@pytest.fixture
def kernel(start_kernel, fresh_data_dir):
    return start_kernel(
        "dagger", DAGGER_KERNEL_DATA_DIR=str(fresh_data_dir), DAGGER_KERNEL_ENGINE="local"
    )


def test_it_is_typed_in_given_and_masked(kernel):
    got = kernel.execute("%sandbox secret API_KEY", answers=[VALUE], allow_stdin=True)
    assert got.content["status"] == "ok"
    assert got.inputs[0]["content"] == {"prompt": "API_KEY: ", "password": True}
    assert VALUE not in repr(got)
    assert kernel.execute(LENGTH).stdout == f"{len(VALUE)}\n"
    assert kernel.execute("!echo $API_KEY").stdout == "***\n"
    got = kernel.execute("os.environ['API_KEY']", user_expressions={"key": "os.environ['API_KEY']"})
    assert VALUE not in repr((got.iopub, got.reply))
    assert got.content["user_expressions"]["key"]["data"]["text/plain"] == "'***'"
    assert kernel.execute("%sandbox secret").stdout == "The next cells get API_KEY.\n"
    kernel.execute("%sandbox secret API_KEY --forget")
    assert kernel.execute(LENGTH).stdout == "0\n"
    assert kernel.execute("%sandbox secret").stdout == "The next cells get no secret.\n"


def test_a_value_in_a_cell_and_a_client_without_questions_are_refused(kernel):
    got = kernel.execute("%sandbox secret API_KEY hunter2-hunter2")
    assert got.enames == ["UsageError"]
    assert "hunter2" not in repr([m for m in got.iopub if m["msg_type"] == "error"])
    got = kernel.execute("%sandbox secret API_KEY", allow_stdin=False)
    assert got.enames == ["UsageError"]
    assert kernel.execute(
        "%sandbox secret API_KEY", answers=["short"], allow_stdin=True
    ).enames == ["SecretError"]


def test_an_interrupt_ends_the_question(kernel):
    import time

    message = kernel.start("%sandbox secret API_KEY", allow_stdin=True)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            kernel.kc.get_stdin_msg(timeout=0.1)
            break
        except Exception:
            continue
    kernel.request("interrupt_request", {}, channel="control")
    got = kernel.collect(message)
    assert got.enames == ["KeyboardInterrupt"]
    assert kernel.execute(LENGTH).stdout == "0\n"

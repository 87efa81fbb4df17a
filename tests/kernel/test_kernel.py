"""The real kernels end to end: what a person and an agent meet."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("data_dir")


@pytest.fixture(scope="module")
def python(data_dir, jupyter_environment, tmp_path_factory):
    """One Python kernel for the tests that may share a sandbox."""
    from kernel_client import Kernels

    kernels = Kernels(tmp_path_factory.mktemp("python"))
    yield kernels.start("dagger")
    kernels.end()


def test_variables_and_files_survive(python):
    python.execute("x = [1]; open('note.txt', 'w').write('kept')")
    got = python.execute("x.append(2); print(x, open('note.txt').read())")
    assert got.stdout == "[1, 2] kept\n"


def test_output_is_live(python):
    python.execute("pass")
    msg_id = python.start("import time\nprint('now', flush=True)\ntime.sleep(2)\nprint('late')")
    begin = time.monotonic()
    while python.kc.get_iopub_msg(timeout=10)["msg_type"] != "stream":
        pass
    assert time.monotonic() - begin < 1.5
    python.collect(msg_id)


def test_an_interrupt_keeps_the_kernel_and_the_state(python):
    python.execute("y = 1")
    python.execute("pass")  # the room for the next cell may still be opening after the first
    msg_id = python.start("y = 2\nimport time\nprint('begun', flush=True)\ntime.sleep(60)")
    while python.kc.get_iopub_msg(timeout=20)["msg_type"] != "stream":
        pass
    begin = time.monotonic()
    python.manager.interrupt_kernel()
    got = python.collect(msg_id)
    assert time.monotonic() - begin < 3
    assert got.content["ename"] == "KeyboardInterrupt"
    assert got.replies == 1
    assert python.execute("print(y)").stdout == "2\n"


def test_a_handled_interrupt_is_no_error(python):
    python.execute("pass")
    msg_id = python.start(
        "import time\ntry:\n    print('begun', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('polite')"
    )
    while python.kc.get_iopub_msg(timeout=20)["msg_type"] != "stream":
        pass
    python.manager.interrupt_kernel()
    got = python.collect(msg_id)
    assert got.content["status"] == "ok"
    assert got.enames == []
    assert got.stdout.endswith("polite\n")


def test_stdin(python):
    got = python.execute(
        "import getpass\nname = input('name? ')\nword = getpass.getpass('word: ')\n"
        "print(name, len(word))",
        allow_stdin=True,
        answers=["Ada", "s3cret"],
    )
    assert got.stdout == "Ada 6\n"
    assert [m["content"]["password"] for m in got.inputs] == [False, True]
    refused = python.execute("input('x')")
    assert refused.content["ename"] == "StdinNotImplementedError"


def test_an_interrupt_while_the_cell_waits_for_input(python):
    python.execute("pass")
    msg_id = python.start("input('x? ')", allow_stdin=True)
    python.kc.get_stdin_msg(timeout=20)
    python.manager.interrupt_kernel()
    assert python.collect(msg_id).content["ename"] == "KeyboardInterrupt"
    assert python.execute("print(1)").stdout == "1\n"


def test_limits_are_errors_that_name_the_limit(python):
    got = python.execute("%%sandbox --wall 1\nimport time; time.sleep(30)")
    assert got.content["status"] == "error"
    assert "wall" in got.content["evalue"]
    assert got.reply["metadata"]["dagger_kernel"]["status"] == "limit"


def test_a_crash_is_an_error_of_the_cell(python):
    got = python.execute("import os; os._exit(3)")
    assert got.content["status"] == "error"
    assert python.execute("print('alive')").stdout == "alive\n"


def test_completion_and_inspection_on_the_real_state(python):
    python.execute("def ship(order, fast=False):\n    'Send one order.'\nwarehouse = 1")
    code = "s = '🎉'; wareh"
    content = python.request("complete_request", {"code": code, "cursor_pos": len(code)}).content
    assert "warehouse" in content["matches"]
    assert content["cursor_start"] == len(code) - 5
    content = python.request("inspect_request", {"code": "ship(", "cursor_pos": 3}).content
    assert "Send one order." in content["data"]["text/plain"]
    assert "fast" in content["data"]["text/plain"]


def test_silent_code_changes_the_state_and_shows_nothing(python):
    python.execute("z = 1")
    got = python.execute("z = 2\nprint('no')\nz", silent=True)
    assert got.of("stream", "execute_result", "execute_input") == []
    assert python.execute("print(z)").stdout == "2\n"


def test_comm_events_reach_the_running_cell(python):
    msg_id = python.start(
        "import asyncio, time\nfrom comm import create_comm\nseen = []\n"
        "c = create_comm(target_name='jupyter.widget', metadata={'version': '2.1.0'})\n"
        "c.on_msg(lambda m: seen.append(m['content']['data']))\n"
        "end = time.time() + 20\n"
        "while not seen and time.time() < end: await asyncio.sleep(0.05)\n"
        "print(seen)"
    )
    while True:
        message = python.kc.get_iopub_msg(timeout=20)
        if message["msg_type"] == "comm_open":
            break
    assert message["metadata"] == {"version": "2.1.0"}
    python.send("comm_msg", {"comm_id": message["content"]["comm_id"], "data": {"value": 7}})
    got = python.collect(msg_id)
    assert "'value': 7" in got.stdout


def test_files_come_back_with_the_cell(python):
    got = python.execute(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.savefig('chart.png'); plt.close()"
    )
    mimes = [set(m["content"]["data"]) for m in got.of("display_data")]
    assert any("image/png" in mime for mime in mimes)
    files = got.reply["metadata"]["dagger_kernel"]["files"]
    assert [item["path"] for item in files] == ["chart.png"]


def test_bash(kernels):
    bash = kernels.start("dagger-bash")
    assert bash.execute("cd /tmp; X=5; f() { echo in f; }").content["status"] == "ok"
    assert bash.execute("pwd; echo $X; f").stdout == "/tmp\n5\nin f\n"
    got = bash.execute("exit 3")
    assert got.content["status"] == "error"
    assert got.reply["metadata"]["dagger_kernel"]["exit_code"] == 3


def test_a_killed_kernel_comes_back_by_replay(kernels, fresh_data_dir):
    env = {"DAGGER_KERNEL_DATA_DIR": str(fresh_data_dir)}
    first = kernels.start("dagger", **env)
    first.execute("x = 41; print('once')")
    sandbox = first.execute("%sandbox id").stdout.strip()
    os.kill(first.manager.provisioner.pid, signal.SIGKILL)
    shutil.rmtree(fresh_data_dir / "layers", ignore_errors=True)
    second = kernels.start("dagger", DAGGER_KERNEL_SANDBOX=sandbox, **env)
    got = second.execute("print(x + 1)", timeout=120)
    assert got.stdout == "42\n"
    # Magics are no steps: the log's last number was 1.
    assert got.content["execution_count"] == 2
    assert [m["msg_type"] for m in got.outputs] == ["stream"]


def test_a_notebook_resumes_and_restart_begins_anew(kernels, fresh_data_dir):
    env = {"DAGGER_KERNEL_DATA_DIR": str(fresh_data_dir), "JPY_SESSION_NAME": "/nb/a.ipynb"}
    first = kernels.start("dagger", **env)
    first.execute("x = 1")
    first.manager.shutdown_kernel()
    again = kernels.start("dagger", **env)
    assert again.execute("print(x)").stdout == "1\n"
    again.manager.restart_kernel(env={**os.environ, **env})
    again.kc.wait_for_ready(timeout=60)
    got = again.execute("print(x)")
    assert got.content["ename"] == "NameError"
    assert got.content["execution_count"] == 1


def test_without_a_notebook_every_start_is_new(kernels):
    first = kernels.start("dagger").execute("%sandbox id").stdout
    second = kernels.start("dagger").execute("%sandbox id").stdout
    assert first != second


def test_an_interrupt_stops_a_replay(kernels, fresh_data_dir):
    env = {"DAGGER_KERNEL_DATA_DIR": str(fresh_data_dir), "DAGGER_KERNEL_STANDBY": "false"}
    first = kernels.start("dagger", **env)
    for _ in range(3):
        first.execute("import time; time.sleep(3)")
    sandbox = first.execute("%sandbox id").stdout.strip()
    first.manager.shutdown_kernel()
    shutil.rmtree(fresh_data_dir / "layers", ignore_errors=True)
    second = kernels.start("dagger", DAGGER_KERNEL_SANDBOX=sandbox, **env)
    msg_id = second.start("print('ran')")
    time.sleep(2.5)
    second.manager.interrupt_kernel()
    got = second.collect(msg_id)
    assert got.content["ename"] == "KeyboardInterrupt"
    assert got.stdout == ""
    assert [m["msg_type"] for m in got.outputs] == ["error"]


def test_disabled_is_one_clear_error(kernels):
    client = kernels.start("dagger", DAGGER_KERNEL_ENABLED="false")
    got = client.execute("1")
    assert got.enames == ["SandboxDisabledError"]
    assert "DAGGER_KERNEL_ENABLED" in got.content["evalue"]


def test_a_missing_sandbox_is_one_clear_error(kernels):
    got = kernels.start("dagger", DAGGER_KERNEL_SANDBOX="nowhere").execute("1")
    assert got.enames == ["SandboxNotFoundError"]


@pytest.mark.parametrize("options", [{"transport": "ipc"}, {"transport_encryption": "required"}])
def test_other_transports(jupyter_environment, tmp_path, options):
    from jupyter_client.manager import KernelManager

    if "transport" in options:
        options = {**options, "ip": str(tmp_path / "k")}
    manager = KernelManager(kernel_name="dagger", **options)
    manager.start_kernel(cwd=str(tmp_path))
    kc = manager.client()
    kc.start_channels()
    try:
        kc.wait_for_ready(timeout=60)
        assert kc.execute("1", reply=True, timeout=60)["content"]["status"] == "ok"
    finally:
        kc.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
        kc.context.term()


def test_nothing_is_imported_from_the_notebooks_directory(kernels):
    for name in ("json", "random", "dagger_kernel", "logging", "ipython_config", "asyncio"):
        (kernels.folder / f"{name}.py").write_text(f"open({str(kernels.folder / 'ran')!r}, 'w')")
    assert kernels.start("dagger").execute("print(1)").stdout == "1\n"
    assert not Path(kernels.folder / "ran").exists()

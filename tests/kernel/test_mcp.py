"""jupyter-mcp-server on a notebook with this kernel: a real Jupyter server, a real agent's tools.

It needs an environment of its own, for it brings JupyterLab and real-time collaboration: ``python -m venv mcp``,
``mcp/bin/pip install jupyter-mcp-server jupyter-collaboration``, and DAGGER_KERNEL_TEST_MCP names that ``mcp``.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

HERE = Path(__file__).parent
REPO = HERE.parents[1]
MCP = Path(os.environ.get("DAGGER_KERNEL_TEST_MCP", "/nowhere")) / "bin"

pytestmark = [
    pytest.mark.usefixtures("data_dir", "jupyter_environment"),
    pytest.mark.skipif(
        not (MCP / "jupyter-mcp-server").exists(),
        reason="no jupyter-mcp-server: DAGGER_KERNEL_TEST_MCP names no environment that has it",
    ),
]


def call(url, token, path, body=None):
    request = urllib.request.Request(  # noqa: S310 - loopback
        url + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"token {token}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)


@pytest.fixture
def server(tmp_path):
    """A Jupyter server of the other environment, with a notebook open on our kernel: its address and token."""
    kernels = tmp_path / "jupyter" / "kernels" / "dagger"
    kernels.mkdir(parents=True)
    spec = json.loads((REPO / "kernelspec" / "python" / "kernel.json").read_text())
    spec["argv"][0] = sys.executable
    spec["env"] = {"PYTHONPATH": str(REPO)}
    (kernels / "kernel.json").write_text(json.dumps(spec))
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    nbformat.write(nbformat.v4.new_notebook(), notebooks / "agent.ipynb")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    token, url = secrets.token_hex(8), f"http://127.0.0.1:{port}"
    env = {**os.environ, "JUPYTER_PATH": str(tmp_path / "jupyter")}
    del env["PYTHONPATH"]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [MCP / "jupyter-server", "--ip=127.0.0.1", f"--port={port}", "--no-browser",
             "--allow-root", f"--IdentityProvider.token={token}", "--ServerApp.port_retries=0"],
            cwd=notebooks, env=env, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    call(url, token, "/api/status")
                    break
                except OSError:
                    assert time.monotonic() < deadline, (tmp_path / "server.log").read_text()
                    time.sleep(0.3)
            # As JupyterLab does when a person opens the notebook.
            call(url, token, "/api/sessions", {"path": "agent.ipynb", "name": "agent.ipynb",
                 "type": "notebook", "kernel": {"name": "dagger"}})  # fmt: skip
            yield url, token
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.timeout(300)
def test_an_agent_works_on_a_notebook(server, tmp_path):
    done = subprocess.run(
        [MCP / "python", str(HERE / "mcp_agent.py"), *server, "x = 20", "%sandbox log",
         "print(x + 1)\n{'x': x}", "1 / 0", "open('t.csv', 'w').write('a,b\\n1,2\\n');",
         "import pandas as pd; pd.DataFrame({'a': [x]})"],
        capture_output=True, text=True, timeout=200, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    said = ["\n".join(json.loads(line)["texts"]) for line in done.stdout.splitlines()]
    assert "Successfully activate notebook" in said[0]
    assert "cell   ok" in said[2]
    assert "21\n" in said[3]
    assert "{'x': 20}" in said[3]
    assert "ZeroDivisionError" in said[4]
    assert "t.csv" in said[5]
    assert "20" in said[6]
    assert "pd.DataFrame" in said[7]

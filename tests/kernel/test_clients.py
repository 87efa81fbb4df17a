"""Real clients: nbclient, papermill, nbconvert, jupytext, jupyter console, raw pyzmq."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

pytestmark = pytest.mark.usefixtures("data_dir", "jupyter_environment")
REPO = Path(__file__).parents[2]


def notebook(*cells, **metadata):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata["kernelspec"] = {
        "name": "dagger", "display_name": "Python (Dagger sandbox)", "language": "python",
    }  # fmt: skip
    made.metadata.update(metadata)
    return made


def run(made, folder, **options):
    client = NotebookClient(made, resources={"metadata": {"path": str(folder)}}, **options)
    client.execute()
    return made


def tool(*words, cwd, stdin="", timeout=240):
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd, input=stdin, capture_output=True, text=True,
        timeout=timeout, env=os.environ, check=False,
    )  # fmt: skip


def text_of(cell):
    return "".join(o["text"] for o in cell.outputs if o["output_type"] == "stream")


def test_nbclient(tmp_path):
    made = run(
        notebook("x = 20", "print(x + 1)", "import pandas as pd; pd.DataFrame({'a': [x]})"),
        tmp_path,
        timeout=120,
    )
    assert text_of(made.cells[1]) == "21\n"
    assert "text/html" in made.cells[2].outputs[0]["data"]
    assert made.metadata["language_info"]["name"] == "python"
    assert [cell.execution_count for cell in made.cells] == [1, 2, 3]
    nbformat.validate(made)


def test_nbclient_leaves_no_progress_in_the_notebook(tmp_path, fresh_data_dir, monkeypatch):
    monkeypatch.setenv("DAGGER_KERNEL_DATA_DIR", str(fresh_data_dir))
    first = notebook("import time; time.sleep(2)", "time.sleep(2)", "%sandbox id")
    sandbox = text_of(run(first, tmp_path).cells[2]).strip()
    import shutil

    shutil.rmtree(fresh_data_dir / "layers")
    monkeypatch.setenv("DAGGER_KERNEL_SANDBOX", sandbox)
    monkeypatch.setenv("DAGGER_KERNEL_STANDBY", "false")
    again = run(notebook("print('done')"), tmp_path)
    assert [o["output_type"] for o in again.cells[0].outputs] == ["stream"], again.cells[0].outputs
    assert text_of(again.cells[0]) == "done\n"


def test_nbclient_stops_at_an_error(tmp_path):
    made = notebook("1 / 0", "print('no')")
    with pytest.raises(CellExecutionError):
        run(made, tmp_path)
    assert made.cells[0].outputs[0]["ename"] == "ZeroDivisionError"
    assert made.cells[1].outputs == []


def test_nbclient_timeout_interrupts(tmp_path):
    made = run(
        notebook("a = 5", "while True: pass", "print(a)"),
        tmp_path,
        timeout=25,
        interrupt_on_timeout=True,
        allow_errors=True,
    )
    assert made.cells[1].outputs[0]["ename"] == "KeyboardInterrupt"
    assert text_of(made.cells[2]) == "5\n"


async def test_ten_notebooks_at_once(tmp_path):
    async def one(number):
        made = notebook(f"x = {number}", "x = x * x\nopen('n.txt', 'w').write(str(x))", "print(x)")
        resources = {"metadata": {"path": str(tmp_path)}}
        await NotebookClient(made, resources=resources, startup_timeout=120).async_execute()
        return text_of(made.cells[2])

    done = await asyncio.gather(*(one(number) for number in range(10)))
    assert done == [f"{n * n}\n" for n in range(10)]


def test_papermill(tmp_path):
    made = notebook("n = 1", "print(n * 2)")
    made.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(made, tmp_path / "in.ipynb")
    done = tool("papermill", "in.ipynb", "out.ipynb", "-p", "n", "21", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = nbformat.read(tmp_path / "out.ipynb", 4)
    assert text_of(out.cells[-1]) == "42\n"


def test_papermill_reports_the_failing_cell(tmp_path):
    nbformat.write(notebook("1 / 0", "print('no')"), tmp_path / "in.ipynb")
    done = tool("papermill", "in.ipynb", "out.ipynb", cwd=tmp_path)
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr


def test_nbconvert(tmp_path):
    made = notebook("print('hello')", "open('t.csv', 'w').write('a,b\\n1,2\\n');")
    nbformat.write(made, tmp_path / "in.ipynb")
    words = ("--to", "html", "--execute", "in.ipynb")
    done = tool("jupyter", "nbconvert", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "in.html").read_text()
    assert "hello" in page
    assert "t.csv" in page


def test_jupytext(tmp_path):
    (tmp_path / "in.py").write_text("# %%\nx = 2\n\n# %%\nprint(x + 3)\n")
    words = ("--set-kernel", "dagger", "--to", "ipynb", "--execute", "in.py")
    done = tool("jupytext", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = nbformat.read(tmp_path / "in.ipynb", 4)
    assert text_of(out.cells[-1]) == "5\n"
    done = tool("jupytext", "--to", "py:percent", "in.ipynb", "-o", "back.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "name: dagger" in (tmp_path / "back.py").read_text()


def test_bash_notebook(tmp_path):
    made = notebook("X=5; cd /tmp", "echo $X; pwd")
    made.metadata["kernelspec"] = {
        "name": "dagger-bash", "display_name": "Bash (Dagger sandbox)", "language": "bash",
    }  # fmt: skip
    run(made, tmp_path)
    assert text_of(made.cells[1]) == "5\n/tmp\n"


def test_jupyter_console(tmp_path):
    pytest.importorskip("jupyter_console")
    pytest.importorskip("pexpect")
    import pexpect

    console = pexpect.spawn(
        sys.executable,
        ["-m", "jupyter_console", "--kernel", "dagger", "--simple-prompt"],
        cwd=str(tmp_path), encoding="utf-8", timeout=90, env={**os.environ, "TERM": "dumb"},
    )  # fmt: skip
    try:
        console.expect("In \\[1\\]:")
        console.sendline("print(6 * 7)")
        console.expect("42")
        console.expect("In \\[2\\]:")
        console.sendline("input('who? ')")
        console.expect("who\\?")
        console.sendline("Ada")
        console.expect("'Ada'")
        console.sendline("exit")
        console.expect(pexpect.EOF)
    finally:
        console.close(force=True)


def test_the_raw_zeromq_agent_of_the_docs():
    done = subprocess.run(
        [sys.executable, str(REPO / "docs" / "agent_raw_zmq.py"), "x = 6", "print(x * 7)", "1 / 0"],
        capture_output=True, text=True, timeout=180, env=os.environ, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert first["error"] is None
    assert second["stdout"] == "42\n"
    assert second["step"]["seq"] == 2
    assert third["error"]["ename"] == "ZeroDivisionError"

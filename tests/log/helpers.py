"""Steps and results for the tests of the log, and processes of their own."""

import itertools
import os
import subprocess
import sys
import tempfile
import traceback
import uuid
from pathlib import Path

import pytest

from dagger_kernel.steps import FileChange, Kind, Result, Status, Step, fresh_nonce

SQLITE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
POSTGRESQL = pytest.mark.parametrize(
    "backend", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True
)

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

counter = itertools.count(1)


def make_step(sandbox, parent=None, kind=Kind.CELL, **fields):
    """A step of a sandbox; ``parent`` is a step or an id."""
    sandbox_id = getattr(sandbox, "id", sandbox)
    parent_id = getattr(parent, "id", parent)
    values = {
        "id": uuid.uuid4().hex,
        "sandbox_id": sandbox_id,
        "seq": 0,
        "parent_id": parent_id,
        "kind": kind,
        "nonce": fresh_nonce(),
        "base_digest": "b" * 64,
        "runner_digest": "r" * 64,
        "engine": "local",
        "key": uuid.uuid4().hex * 2,
        "source": f"x = {next(counter)}\n",
    }
    return Step(**values | fields)


def make_result(step, **fields):
    """A result of a step."""
    values = {
        "step_id": getattr(step, "id", step),
        "status": Status.OK,
        "execution_count": 1,
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "hello\n"}],
        "usage": {"cpu_seconds": 0.01},
        "digest": "d" * 64,
    }
    return Result(**values | fields)


def make_file(log, path, data, **fields):
    """An exported file whose bytes are in the blob store."""
    blob = log.blobs.put(data)
    values = {"kind": "new", "size": len(data), "blob": blob, "mime": "text/plain"}
    return FileChange(path=path, **values | fields)


def run_cell(log, sandbox, parent=None, **fields):
    """Append a cell and its result; return the step."""
    step = log.append(make_step(sandbox, parent, **fields))
    log.finish(make_result(step))
    return step


def run_cells(log, sandbox, count, parent=None):
    """Append a line of cells; return the steps."""
    steps = []
    for _ in range(count):
        parent = run_cell(log, sandbox, parent)
        steps.append(parent)
    return steps


def start(script, settings, *arguments, **options):
    """Start a script of this directory as a process of its own that uses the same log."""
    environ = {name: value for name, value in os.environ.items() if "DAGGER_KERNEL" not in name}
    environ |= {
        "DAGGER_KERNEL_DATA_DIR": settings.data_dir,
        "DAGGER_KERNEL_DATABASE_URL": settings.database_url,
        "PYTHONPATH": str(ROOT),
    }
    environ |= options.pop("environ", {})
    return subprocess.Popen(
        [sys.executable, str(HERE / "processes" / script), *map(str, arguments)],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finished(process, timeout=60):
    """Wait for a process and return what it printed; its failure is the test's."""
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    return out


def as_nobody(function):
    """Return the text that a function returns in a process of the user nobody (needs root).

    Forked, because that user may not read the interpreter.
    """

    def work(writer):
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            said = str(function())
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())

    child, stream = forked(work)
    with stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


def open_to_all(path):
    """Let other users into a test's directory."""
    below = Path(tempfile.gettempdir())
    for folder in (path, *path.parents):
        if folder != below and folder.is_relative_to(below):
            os.chmod(folder, 0o755)


def forked(function, *arguments):
    """Start a function in a forked process; return its id and what it writes to.

    Forked, as importing everything again takes half a second. The function takes a descriptor first, and
    opens a log of its own; the parent must have none open.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            function(writer, *arguments)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    return child, open(reader, encoding="utf-8")

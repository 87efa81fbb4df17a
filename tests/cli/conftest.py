"""A log with a history, and the command line in this process and as a process."""

import json
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from dagger_kernel.cli import main
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings
from dagger_kernel.steps import FileChange, Kind, Result, Status, Step, fresh_nonce


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    """Settings of nobody: no variable, no config file, no data directory but the test's own."""
    for name in list(os.environ):
        if name.startswith(("DAGGER_KERNEL_", "JUPYTER")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DAGGER_KERNEL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("DAGGER_KERNEL_CONFIG", str(tmp_path / "none.toml"))
    return tmp_path


@dataclass
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def cli(capsys):
    """Run a command in this process."""

    def run(*args):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(arg) for arg in args])
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def process():
    """Run a command as a person does."""

    def run(*args, **options):
        command = [sys.executable, "-c", "from dagger_kernel.cli import main; main()", *args]
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
            **options,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def history():
    """A sandbox with an upload, three cells and a rewind, made without any engine."""
    store = open_log(Settings.load())
    row = store.create_sandbox("ada", "reports/q3.ipynb")
    steps = []

    def add(kind, source="", payload=None, result=None):
        step = store.append(
            Step(
                id=uuid.uuid4().hex,
                sandbox_id=row.id,
                seq=0,
                parent_id=steps[-1].id if steps else None,
                kind=kind,
                nonce=fresh_nonce(),
                base_digest="b" * 64,
                runner_digest="r" * 64,
                engine="local",
                key=uuid.uuid4().hex * 2,
                source=source,
                payload=payload or {},
            )
        )
        steps.append(step)
        if result is not None:
            store.finish(Result(step_id=step.id, **result))
        return step

    def export(path, data, kind="new", mime="text/csv"):
        return FileChange(
            path=path, kind=kind, size=len(data), blob=store.blobs.put(data), mime=mime
        )

    given = store.blobs.put(b"a,b\n1,2\n")
    item = {"path": "attachments/in.csv", "blob": given, "size": 8, "mode": 0o644}
    add(Kind.UPLOAD, payload={"files": [item]}, result={"status": Status.OK})
    add(
        Kind.CELL,
        "frame = read()\nframe.to_csv('out.csv')",
        {"execution_count": 1},
        {
            "status": Status.OK,
            "execution_count": 1,
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": "saved \x1b[31mred\x1b[0m\n"}
            ],
            "usage": {"wall_seconds": 0.25, "max_rss_bytes": 50 << 20},
            "files": [
                export("out.csv", b"one\n"),
                export("charts/week.png", b"\x89PNG", mime="image/png"),
                FileChange(
                    path="huge.bin", kind="new", size=99 << 20, skipped="larger than 16 MiB"
                ),
            ],
            "state_report": {"saved": ["frame"]},
        },
    )
    add(
        Kind.CELL,
        "1 / 0",
        {"execution_count": 2},
        {
            "status": Status.ERROR,
            "execution_count": 2,
            "outputs": [
                {
                    "output_type": "error",
                    "ename": "ZeroDivisionError",
                    "evalue": "division by zero",
                    "traceback": ["ZeroDivisionError: division by zero"],
                }
            ],
            "files": [export("out.csv", b"two\n", "changed")],
        },
    )
    add(Kind.CELL, "while True: pass", {"execution_count": 3})
    store.close()
    return SimpleNamespace(id=row.id, steps=steps)

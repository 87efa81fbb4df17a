"""Drives cells through new processes against one state directory."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RUNNER = HERE.parents[2] / "dagger_kernel" / "runner"
PRELOAD = ("numpy", "pandas", "matplotlib.pyplot")


def environment():
    keep = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "VIRTUAL_ENV")}
    return {
        **keep,
        "PYTHONHASHSEED": "7",
        "MPLBACKEND": "agg",
        "IPYTHONDIR": tempfile.gettempdir() + "/dk-ipython",
    }


class Engine:
    """Runs cells in one of the two ways; start once, use for many notebooks."""

    def __init__(self, mode, python=sys.executable, preload=PRELOAD):
        self.mode, self.python = ("zygote" if mode == "bare" else mode), python
        if mode == "bare":
            preload = ()
        self._folder = tempfile.TemporaryDirectory()
        os.symlink(RUNNER, os.path.join(self._folder.name, "dagger_kernel_runner"))
        self._zygote = None
        self._preload = preload

    def _start(self, *extra):
        return subprocess.Popen(
            [self.python, str(HERE / "worker.py"), self.mode, self._folder.name, *extra],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd=self._folder.name,
        )

    def run(self, job):
        line = json.dumps(job) + "\n"
        if self.mode == "fresh":
            with self._start() as process:
                answer, _ = process.communicate(line, timeout=120)
        else:
            if self._zygote is None:
                self._zygote = self._start(*self._preload)
            self._zygote.stdin.write(line)
            self._zygote.stdin.flush()
            answer = self._zygote.stdout.readline()
        found = json.loads(answer)
        if isinstance(found, dict):
            assert "broken" not in found, found["broken"]
        return found

    def close(self):
        if self._zygote is not None:
            self._zygote.stdin.close()
            self._zygote.wait(20)
            self._zygote.stdout.close()
        self._folder.cleanup()


class Notebook:
    """One sandbox: a state directory, a home, and cells run one after another."""

    def __init__(self, engine, folder):
        self.engine = engine
        self.root = Path(folder) / "state"
        self.home = Path(folder) / "home"
        self.root.mkdir()
        self.home.mkdir()
        self.count = 0

    def run(self, source, **options):
        self.count += 1
        job = {"root": str(self.root), "home": str(self.home), "cell": self.count, "source": source}
        return self.engine.run({**job, **options})

    def run_all(self, cells):
        return [self.run(cell) for cell in cells]

    def assert_like_one_process(self, cells):
        """Run cells here and in a single process; every output and error must be the same."""
        plain = self.home.parent / "plain"
        plain.mkdir()
        expected = self.engine.run({"cells": cells, "home": str(plain)})
        for number, (cell, wanted) in enumerate(zip(cells, expected, strict=True), 1):
            got = self.run(cell)
            assert got["report"].get("error") is None, got["report"]
            assert (got["ename"], text_of(got)) == (wanted["ename"], text_of(wanted)), (
                number,
                cell,
            )


def text_of(outcome):
    """Standard output without what differs from process to process."""
    text = ANSI.sub("", outcome["stdout"]).replace("/plain", "/home")
    if outcome["ename"] is not None:
        # The frames of the lazy lookup may stand in the traceback.
        text = text.partition("-" * 75)[0]
    return re.sub(r"0x[0-9a-f]{6,}", "0x", text)


ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def holds(expectation, outcomes):
    """Whether one expectation of the case files holds."""
    kind, value = expectation["kind"], expectation.get("value")
    if kind == "any_of":
        return any(holds({"cell": expectation["cell"], **e}, outcomes) for e in value)
    got = outcomes[expectation["cell"]]
    text = ANSI.sub(
        "", "\n".join(str(got[k] or "") for k in ("stdout", "stderr", "result", "ename", "evalue"))
    )
    if kind == "no_error":
        return got["ename"] is None
    if kind == "stdout_equals":
        return got["stdout"] == value
    if kind == "stdout_contains":
        return value in got["stdout"]
    if kind == "result_equals":
        return got["result"] == value
    if kind == "error_ename":
        return got["ename"] in ([value] if isinstance(value, str) else value)
    if kind == "not_contains":
        return value not in text
    if kind == "contains":
        return value in text
    if kind == "max_seconds":
        return True
    raise NotImplementedError(kind)

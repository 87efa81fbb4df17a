"""Runs cells for the tests, each in a process of its own, as the runner does.

``fresh``: a new interpreter runs one cell. ``zygote``: one interpreter with the
usual libraries imported forks a child for every cell.
"""

import io
import json
import os
import sys
import tempfile
import traceback
import types


def make_shell():
    from dagger_kernel_runner.magics import RunnerMagics
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    main = types.ModuleType("__main__", "Automatically created module for IPython")
    shell = InteractiveShell.instance(config=config, user_module=main, user_ns=main.__dict__)
    sys.modules["__main__"] = main
    shell.register_magics(RunnerMagics)
    return shell


def run_cell(shell, job):
    """Run one cell and save; give what a client would see."""
    from dagger_kernel_runner.state import StateSession

    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(
        io.FileIO(1, "w", closefd=False), "utf-8", write_through=True
    )
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), "utf-8", write_through=True
    )
    os.chdir(job["home"])
    cell = job["cell"]
    session = StateSession(job["root"], shell.user_ns)
    session.open()
    shell.state = session
    if job.get("warm"):
        session.warm()
    shell.execution_count = cell
    history = shell.history_manager
    for lines in (history.input_hist_parsed, history.input_hist_raw):
        lines.extend([""] * (cell - len(lines)))
    session.begin(
        shell.transform_cell(job["source"]),
        cell=cell,
        step=f"s{cell}",
        seed=b"s%d" % cell,
        recompute=job.get("recompute", False),
    )
    session.make_due()
    result = shell.run_cell(job["source"], store_history=True)
    error = result.error_before_exec or result.error_in_exec
    names = session.names()
    session.ended = "ok" if error is None else "error"
    report = session.save()
    sys.stdout.flush()
    sys.stderr.flush()
    out.seek(0)
    err.seek(0)
    return {
        "stdout": out.read().decode("utf-8", "replace"),
        "stderr": err.read().decode("utf-8", "replace"),
        "result": repr(result.result) if result.result is not None else None,
        "ename": type(error).__name__ if error is not None else None,
        "evalue": str(error) if error is not None else None,
        "names": names,
        "report": report,
    }


def run_plain(shell, job):
    """Run all cells in this one process, without any state: what must come out."""
    os.chdir(job["home"])
    found = []
    for number, source in enumerate(job["cells"], 1):
        out = tempfile.TemporaryFile()
        os.dup2(out.fileno(), 1)
        sys.stdout = sys.__stdout__ = io.TextIOWrapper(
            io.FileIO(1, "w", closefd=False), "utf-8", write_through=True
        )
        shell.execution_count = number
        result = shell.run_cell(source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        sys.stdout.flush()
        out.seek(0)
        found.append(
            {
                "stdout": out.read().decode("utf-8", "replace"),
                "ename": type(error).__name__ if error else None,
            }
        )
    return found


def answer(shell, job, stream):
    try:
        text = json.dumps(run_plain(shell, job) if "cells" in job else run_cell(shell, job))
    except BaseException:
        text = json.dumps({"broken": traceback.format_exc()})
    os.write(stream, text.encode() + b"\n")
    os._exit(0)


def main():
    mode, link = sys.argv[1:3]
    sys.path[:] = [
        "",
        link,
        *(entry for entry in sys.path if entry != os.path.dirname(os.path.abspath(__file__))),
    ]
    replies = os.dup(1)
    os.dup2(2, 1)
    shell = make_shell()
    if mode == "fresh":
        answer(shell, json.loads(sys.stdin.readline()), replies)
    for name in sys.argv[3:]:
        __import__(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            answer(shell, json.loads(line), replies)
        _, status = os.waitpid(child, 0)
        if status:
            os.write(replies, json.dumps({"broken": f"status {status}"}).encode() + b"\n")


if __name__ == "__main__":
    main()

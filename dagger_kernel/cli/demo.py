"""``dagger-kernel demo``: real notebooks on the kernel, by nbclient, in a directory of their own."""

from __future__ import annotations

import getpass
import os
import shlex
import sys
import time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagger_kernel.errors import DaggerKernelError
from dagger_kernel.sandbox.uploads import Given, upload_files
from dagger_kernel.settings import Settings

from . import data, output
from .exits import ExitCode
from .export import save_all
from .prepare import prepare

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOTEBOOKS: dict[str, tuple[str, ...]] = {"signups": ("q3-signups.csv",), "analysis": ()}
"""Each notebook of `dagger_kernel.demo` with the files that are put into its sandbox first."""


def run(*, directory: Path, kernel: str, only: str | None, as_json: bool) -> None:
    """Run the notebooks and print where the results are."""
    names = [name for name in NOTEBOOKS if only in (None, name)]
    if not names:
        raise DaggerKernelError(
            f"There is no demo notebook {only!r}.", kept="", remedy="Take: " + ", ".join(NOTEBOOKS)
        )
    directory = directory.resolve()
    _confine(directory)
    settings = Settings.load()
    print(f"1. The base, in {settings.data_path}", file=sys.stderr)
    engine, base = prepare(settings)
    print(f"   {base.description} on the {engine} engine", file=sys.stderr)
    done = []
    for number, name in enumerate(names, 2):
        print(f"{number}. The notebook {name}.ipynb, cell by cell", file=sys.stderr)
        done.append(_run_notebook(name, directory, kernel, settings))
        print(
            f"   {done[-1]['cells']} cells in {output.human_seconds(done[-1]['seconds'])}",
            file=sys.stderr,
        )
    if as_json:
        output.print_json({"engine": engine, "notebooks": done})
    else:
        _print(done)
    sys.exit(ExitCode.PROBLEM if any(one["failed"] for one in done) else ExitCode.OK)


def _confine(directory: Path) -> None:
    """Point everything that the demo writes at its directory, unless told otherwise."""
    directory.mkdir(parents=True, exist_ok=True)
    places = {
        "DAGGER_KERNEL_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "XDG_CACHE_HOME": "cache",
        "IPYTHONDIR": "ipython",
    }
    for variable, name in places.items():
        os.environ.setdefault(variable, str(directory / name))


def _run_notebook(name: str, directory: Path, kernel: str, settings: Settings) -> dict[str, Any]:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    source = resources.files("dagger_kernel.demo")
    notebook = nbformat.reads((source / f"{name}.ipynb").read_text("utf-8"), 4)
    notebook.metadata.kernelspec.name = kernel
    sandbox_id = _new_sandbox(settings, NOTEBOOKS[name])
    target = directory / f"{name}.ipynb"
    client = NotebookClient(
        notebook,
        kernel_name=kernel,
        timeout=600,
        resources={"metadata": {"path": str(directory)}},
        on_cell_execute=_show,
    )
    start, failed = time.perf_counter(), ""
    try:
        # What the kernel's process itself has to say is not the notebook's.
        with (directory / "kernel.log").open("ab") as messages:
            environment = os.environ | {"DAGGER_KERNEL_SANDBOX": sandbox_id}
            client.execute(env=environment, stderr=messages)
    except CellExecutionError as error:
        failed = f"{error.ename}: {error.evalue}"
    finally:
        seconds = time.perf_counter() - start
        nbformat.write(notebook, target)
    with data.opened_log(settings) as store:
        files = save_all(store, sandbox_id, directory / "files" / name)
    return {
        "name": name,
        "notebook": str(target),
        "sandbox": sandbox_id,
        "cells": sum(1 for _ in _executed(notebook)),
        "seconds": round(seconds, 3),
        "files": [str(path) for path in files],
        "failed": failed,
    }


def _new_sandbox(settings: Settings, files: Sequence[str]) -> str:
    """Make a sandbox, put the demo's files into its ``attachments/``, and return its id."""
    source = resources.files("dagger_kernel.demo")
    with data.opened_log(settings, create=True) as store:
        row = store.create_sandbox(settings.owner or getpass.getuser())
        contents = [Given(name, (source / name).read_bytes()) for name in files]
        upload_files(store, row.id, contents, settings)
        return row.id


def _executed(notebook: Any) -> Iterator[Any]:
    return (cell for cell in notebook.cells if cell.cell_type == "code" and cell.execution_count)


def _show(cell: Any, cell_index: int) -> None:
    if cell.cell_type == "code":
        print(
            f"   [{cell_index}] {output.first_line(cell.source, 70)}", file=sys.stderr, flush=True
        )


def _print(done: list[dict[str, Any]]) -> None:
    for one in done:
        how = f"FAILED, {output.one_line(one['failed'])}" if one["failed"] else "done"
        print(f"\n{one['name']}: {how}")
        print(f"  executed notebook  {_short(one['notebook'])}")
        for path in one["files"]:
            print(f"  exported file      {output.one_line(_short(path))}")
    print("\nWhat happened is in the log:")
    print(f"  export DAGGER_KERNEL_DATA_DIR={shlex.quote(os.environ['DAGGER_KERNEL_DATA_DIR'])}")
    for one in done:
        print(f"  {_short(sys.argv[0])} log {one['sandbox']}  # {one['name']}")


def _short(path: str) -> str:
    """Return a path as it is best typed from here."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative

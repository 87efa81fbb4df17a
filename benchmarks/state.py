"""What keeping variables costs: this package beside ``dill.dump_session``, in one run.

Each cell is a fork of one process with the usual libraries, as on the local
engine. For dill the whole session is written after the cell and read before the
next, which is what its users do. In one process, as plain ipykernel runs them, cells
keep nothing and cost what they compute: the last column. Values are compared with
those of that process at the end: a figure counts only where they are equal.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import traceback
import types
from typing import Any

from .table import Table

STORAGE = {
    "read-only": (
        (
            "import pandas as pd, numpy as np\nrng = np.random.default_rng(0)\n"
            "df = pd.DataFrame({c: rng.random(1_000_000) for c in 'abcdefghijklm'})"
        ),
        lambda n: f"r{n} = float(df[{'abcdefghijklm'[n % 13]!r}].mean()); top = df.head({n})",
    ),
    "appending": (
        "import pandas as pd, numpy as np\nrng = np.random.default_rng(0)\nparts = [rng.random(1_000_000)]",
        lambda n: f"parts.append(rng.random(12_000)); n{n} = len(parts)",
    ),
    "updating in place": (
        (
            "import pandas as pd, numpy as np\nrng = np.random.default_rng(0)\n"
            "df = pd.DataFrame({c: rng.random(1_000_000) for c in 'abcdef'})"
        ),
        lambda n: f"df.loc[{n * 9_000}:{n * 9_000 + 8_000}, {'abcdef'[n % 6]!r}] = {n}.5",
    ),
}


TARGETS = {
    "untouched": (2.0, 4.0),
    "read": (15.0, 64.0),
    "one element": (60.0, 2 * 1024.0),
    "50 small variables": (10.0, float("inf")),
}
"""Milliseconds to restore and save, KB written, at 1 GB; of an untouched frame, what it adds to a cell."""

MOST = {"read-only": 0.115, "appending": 0.013, "updating in place": 0.19}
"""GB a notebook may leave."""


def in_child(work: Any) -> Any:
    """Run something in a fork and give its JSON-able result."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.write(writer, json.dumps(work()).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text)


def fresh_main() -> dict[str, Any]:
    """A new ``__main__``, as the runner makes one for each cell."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    return vars(module)


def ours(root: str, number: int, source: str, probe: str = "") -> dict[str, Any]:
    """One cell on the state directory."""
    from dagger_kernel.runner.state import StateSession

    def work() -> dict[str, Any]:
        namespace = fresh_main()
        session = StateSession(root, namespace)
        session.open()
        start = time.perf_counter()
        session.begin(source, cell=number, step=str(number), seed=b"")
        restored = time.perf_counter()
        exec(compile(source, f"<cell {number}>", "exec"), namespace)
        ran = time.perf_counter()
        value = eval(probe, namespace) if probe else None
        looked = time.perf_counter()
        report = session.save()
        assert "error" not in report, report
        spent = restored - start + time.perf_counter() - looked
        return {
            "ms": 1e3 * spent,
            "run": 1e3 * (ran - restored),
            "bytes": report["bytes_written"],
            "value": value,
        }

    return in_child(work)  # type: ignore[no-any-return]


def dills(root: str, number: int, source: str, probe: str = "") -> dict[str, Any]:
    """One cell with a dump of the whole session."""
    import dill

    def work() -> dict[str, Any]:
        namespace = fresh_main()
        path = os.path.join(root, f"{number - 1}.pkl")
        start = time.perf_counter()
        if os.path.exists(path):
            dill.load_module(path, module=sys.modules["__main__"])
        restored = time.perf_counter()
        namespace = vars(sys.modules["__main__"])
        exec(compile(source, f"<cell {number}>", "exec"), namespace)
        ran = time.perf_counter()
        value = eval(probe, namespace) if probe else None
        looked = time.perf_counter()
        path = os.path.join(root, f"{number}.pkl")
        dill.dump_module(path, module=sys.modules["__main__"])
        spent = restored - start + time.perf_counter() - looked
        return {
            "ms": 1e3 * spent,
            "run": 1e3 * (ran - restored),
            "bytes": os.path.getsize(path),
            "value": value,
        }

    return in_child(work)  # type: ignore[no-any-return]


def plain(cells: list[str], probe: str) -> tuple[Any, float]:
    """The value of `probe` after all cells in one process, and the median ms of the cells but the first."""

    def work() -> Any:
        namespace = fresh_main()
        times = []
        for number, source in enumerate(cells, 1):
            start = time.perf_counter()
            exec(compile(source, f"<cell {number}>", "exec"), namespace)
            times.append(1e3 * (time.perf_counter() - start))
        return eval(probe, namespace), statistics.median(times[1:])

    value, spent = in_child(work)
    return value, float(spent)


def median(runs: list[dict[str, Any]], field: str) -> float:
    return float(statistics.median(run[field] for run in runs))


def single_cells(table: Table, *, repeats: int, rows: int) -> None:
    """Costs of one cell in a session with one large frame, or many small variables."""
    frame = (
        "import pandas as pd, numpy as np\n"
        f"df = pd.DataFrame(np.ones(({rows}, 10)), columns=list('abcdefghij')); x = 0"
    )
    small = "\n".join(f"v{i} = [{i}, 'text {i}', {{'k': {i}}}]" for i in range(50))
    settings = {
        "no frame": ("x = 0", lambda n: f"x += {n}", "x"),
        f"{rows * 80 / 1e9:.1f} GB frame, untouched": (frame, lambda n: f"x += {n}", "x"),
        f"{rows * 80 / 1e9:.1f} GB frame, read": (
            frame,
            lambda n: f"y = float(df.iloc[{n}, 3])",
            "float(y)",
        ),
        f"{rows * 80 / 1e9:.1f} GB frame, one element": (
            frame,
            lambda n: f"df.iloc[{n * 5000}, 3] = {n}",
            "float(df['d'].sum())",
        ),
        "50 small variables": (small, lambda n: f"v3.append({n})", "v3"),
    }
    for label, (setup, step, probe) in settings.items():
        cells = [setup, *(step(number) for number in range(1, repeats + 1))]
        times: dict[str, float] = {}
        written: dict[str, float] = {}
        for name, run in (("ours", ours), ("dill", dills)):
            root = tempfile.mkdtemp(prefix="state-", dir=os.environ.get("BENCHMARK_DIR"))
            try:
                runs = [
                    run(root, n, cell, probe if n == len(cells) else "")
                    for n, cell in enumerate(cells, 1)
                ]
            finally:
                shutil.rmtree(root)
            times[name] = median(runs[1:], "ms")
            written[name] = median(runs[1:], "bytes") / 1e3
            value, times["one process"] = plain(cells, probe)
            if runs[-1]["value"] != value:
                print(
                    f"{label}: {name} ends with another value than one process; its figure does not count"
                )
        table.add(label, {name: times[name] for name in ("ours", "dill", "one process")})
        print(" " * 42 + "".join(f"{f'{value:,.1f} KB written':>22}" for value in written.values()))
        table.rows[f"{label}, KB written"] = written
        kind = label.split(" frame, ")[-1]
        if kind not in TARGETS:
            continue
        cost, most = times["ours"], TARGETS[kind]
        if kind == "untouched":  # what the frame adds to the same cell without it
            cost -= table.rows["no frame"]["ours"]
        met = cost <= most[0] and written["ours"] <= most[1]
        print(
            f"{'':42}{cost:.1f} ms of {most[0]:g}, {written['ours']:.1f} KB of {most[1]:g}: "
            f"{'met' if met else 'missed'}"
        )


def storage(table: Table, *, cells: int) -> None:
    """Bytes on disk after a notebook."""
    for label, (setup, step) in STORAGE.items():
        sources = [setup, *(step(number) for number in range(1, cells))]
        sizes: dict[str, float] = {}
        for name, run in (("ours", ours), ("dill", dills)):
            root = tempfile.mkdtemp(prefix="state-", dir=os.environ.get("BENCHMARK_DIR"))
            try:
                for number, source in enumerate(sources, 1):
                    run(root, number, source)
                    if name == "dill" and number > 1:
                        # What a layer chain would keep is the sum of all dumps.
                        os.replace(
                            os.path.join(root, f"{number - 1}.pkl"), os.path.join(root, "old")
                        )
                        sizes["dill"] = sizes.get("dill", 0.0) + os.path.getsize(
                            os.path.join(root, "old")
                        )
                if name == "ours":
                    sizes["ours"] = float(
                        sum(
                            os.path.getsize(os.path.join(p, f))
                            for p, _, fs in os.walk(root)
                            for f in fs
                        )
                    )
                else:
                    sizes["dill"] += os.path.getsize(os.path.join(root, f"{len(sources)}.pkl"))
            finally:
                shutil.rmtree(root)
        print(
            f"{label:30} ours {sizes['ours'] / 1e9:.4f} GB   dill {sizes['dill'] / 1e9:.3f} GB   "
            f"target {MOST[label]} GB: {'met' if sizes['ours'] / 1e9 <= MOST[label] else 'missed'}",
            flush=True,
        )
        table.rows[f"storage: {label}"] = sizes


def main(*, quick: bool = False) -> None:
    """Run all of it."""
    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd

    from dagger_kernel.runner.state import prime

    assert plt
    assert np
    assert pd
    prime()
    table = Table("state")
    print("restore and save per cell; the cell itself is not counted")
    single_cells(table, repeats=3 if quick else 9, rows=1_000_000 if quick else 12_500_000)
    print("\nstorage of a notebook")
    storage(table, cells=10 if quick else 40)
    table.save()

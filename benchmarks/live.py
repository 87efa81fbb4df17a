"""How quick the kernel answers a person: print to client, completion, interrupt, ten kernels at once."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from .client import Client, Subject, median, subjects
from .table import Table

PRINTING = (
    "import time\nfor n in range(20):\n    print(time.time(), flush=True)\n    time.sleep(0.1)"
)


def main(*, quick: bool = False) -> None:
    """Measure; a full run takes about five minutes."""
    repeat = 3 if quick else 7
    scratch = tempfile.mkdtemp(prefix="dagger-kernel-bench-")
    table = Table("live")
    try:
        clients = {s.name: Client(s, os.path.join(scratch, s.name)) for s in subjects()}
        for client in clients.values():
            client.run("import pandas as pd; df = pd.DataFrame({'a': range(9)})", timeout=1800)
        table.add("print to client", {n: c.print_delay(PRINTING) for n, c in clients.items()})
        time.sleep(2)
        for name, ask in (("complete", Client.complete), ("inspect", Client.inspect)):
            row = {}
            for subject, client in clients.items():
                ask(client, "df.he")
                row[subject] = median([ask(client, "df.he") for _ in range(repeat)])
            table.add(f"{name} df.he", row)
        for label, code in (
            ("sleeping", "import time; time.sleep(60)"),
            ("computing", "while True: pass"),
            ("child process", "import subprocess; subprocess.run(['sleep', '60'])"),
        ):
            row = {
                n: median([c.interrupt(code, 1.0) for _ in range(3)]) for n, c in clients.items()
            }
            table.add(f"interrupt to idle, {label}", row)
        for client in clients.values():
            client.close()
        row = {s.name: ten_kernels(s, os.path.join(scratch, s.name)) for s in subjects()}
        table.add("ten kernels, ten cells each, in all", row)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    table.save()


def ten_kernels(subject: Subject, data_dir: str) -> float:
    """Return milliseconds until ten kernels have run ten cells each."""
    clients = [Client(subject, data_dir) for _ in range(10)]
    try:
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda client: client.run("n = 0", timeout=600), clients))
            begin = time.perf_counter()
            list(pool.map(_ten_cells, clients))
            return (time.perf_counter() - begin) * 1000
    finally:
        for client in clients:
            client.close()


def _ten_cells(client: Client) -> None:
    for _ in range(10):
        client.run("n += 1")

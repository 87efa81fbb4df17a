"""What a cell costs, beside plain ipykernel in the same run.

Subjects: plain ipykernel, the local engine, and Dagger when DAGGER_KERNEL_RUNNER_HOST is set. The subjects take
turns, so that a noisy machine disturbs all of them alike; what counts are the ratios to ipykernel's median.
``back to back``: the measured cell follows another one at once, no standby is ready. ``reading``: after a second.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time

from .bare import bare_exec
from .client import Client, Subject, drop_caches, median, subjects
from .table import Table

FRAME = (
    "import pandas as pd, numpy as np\n"
    "df = pd.DataFrame(np.arange(4_000_000.0).reshape(-1, 4), columns=list('abcd'))\n"
    "x = 0"
)


def main(*, quick: bool = False) -> None:
    """Measure; a full run takes about fifteen minutes."""
    repeat = 5 if quick else 15
    histories = (10, 100) if quick else (10, 100, 500)
    scratch = tempfile.mkdtemp(prefix="dagger-kernel-bench-")
    table = Table("cells")
    try:
        clients = start(table, scratch)
        measure_cells(table, clients, histories, repeat)
        for client in clients.values():
            client.close()
        if "dagger" in clients:
            floor = bare_exec(os.path.join(scratch, "dagger"), repeat)
            table.add("a bare with_exec of Dagger", {"dagger": floor})
        table.add("cold replay of 50 steps", cold_replay(scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    table.save()


def start(table: Table, scratch: str) -> dict[str, Client]:
    """Start every subject, its base already built; record the time to the first output."""
    clients, first = {}, {}
    for subject in subjects():
        data_dir = os.path.join(scratch, subject.name)
        builder = Client(subject, data_dir)
        builder.run("pass", timeout=1800)
        builder.close()
        client = Client(subject, data_dir)
        client.first_output("print('first')")
        first[subject.name] = (time.perf_counter() - client.started) * 1000
        client.run(FRAME)
        clients[subject.name] = client
    table.add("start to first output", first)
    return clients


def measure_cells(
    table: Table, clients: dict[str, Client], histories: tuple[int, ...], repeat: int
) -> None:
    """Measure two cells in both modes after histories of several lengths."""
    for steps in histories:
        for name, client in clients.items():
            while name != "ipykernel" and client.cells < steps:
                client.run("x += 1")
        for code in ("x += 1", "df.head()"):
            for mode in ("back to back", "reading"):
                label = f"{code}, {mode}, {steps} steps"
                table.add(label, in_turns(clients, code, repeat, reading=mode == "reading"))


def in_turns(
    clients: dict[str, Client], code: str, repeat: int, *, reading: bool
) -> dict[str, float]:
    """Return each subject's median milliseconds; the subjects take turns."""
    times: dict[str, list[float]] = {name: [] for name in clients}
    for _ in range(repeat):
        for name, client in clients.items():
            if reading:
                time.sleep(1.0)
            else:
                client.run("pass")  # so that the measured cell really follows at once
            times[name].append(client.run(code))
    return {name: median(values) for name, values in times.items()}


def cold_replay(scratch: str) -> dict[str, float]:
    """Return milliseconds from the request to the reply of a cell on 50 steps whose layers are gone."""
    took: dict[str, float] = {}
    for subject in subjects():
        if subject.name != "local":
            continue  # Dagger's cache belongs to its engine; see tests/engines/dagger
        data_dir = os.path.join(scratch, subject.name)
        sandbox = history_of(subject, data_dir, 50)
        drop_caches(data_dir)
        client = Client(subject, data_dir, sandbox)
        took[subject.name] = client.run("assert x == 49")
        client.close()
    return took


def history_of(subject: Subject, data_dir: str, steps: int) -> str:
    """Make a sandbox of so many steps; return its id."""
    client = Client(subject, data_dir)
    client.run("x = 0")
    for _ in range(steps - 1):
        client.run("x += 1")
    sandbox = client.sandbox_id()
    client.close()
    return sandbox

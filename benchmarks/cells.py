"""What a cell costs, beside plain ipykernel in the same run.

    python benchmarks/cells.py [--repeat 15] [--long 500] [--json FILE]

Subjects: plain ipykernel, the local engine, and Dagger when DAGGER_KERNEL_RUNNER_HOST is set. The subjects take
turns, so that a noisy machine disturbs all of them alike; what counts are the ratios to ipykernel's median.
``back to back`` cells follow at once (no standby is ready), ``reading`` cells after a second.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time

from client import Client, Subject, drop_caches, median

FRAME = "import pandas as pd, numpy as np\ndf = pd.DataFrame(np.arange(4_000_000.0).reshape(-1, 4), columns=list('abcd'))\nx = 0"


def subjects() -> list[Subject]:
    local = {"DAGGER_KERNEL_ENGINE": "local"}
    found = [
        Subject("ipykernel", "python3"),
        Subject("local", "dagger", local),
    ]
    if os.environ.get("DAGGER_KERNEL_RUNNER_HOST"):
        found.append(Subject("dagger", "dagger", {"DAGGER_KERNEL_ENGINE": "dagger"}))
    return found


def measure(clients: dict[str, Client], code: str, repeat: int, pause: float) -> dict[str, float]:
    """Return each subject's median milliseconds; the subjects take turns."""
    times: dict[str, list[float]] = {name: [] for name in clients}
    for _ in range(repeat):
        for name, client in clients.items():
            if pause:
                time.sleep(pause)
            elif name != "ipykernel":
                client.run("pass")  # so that the measured cell really follows at once
            times[name].append(client.run(code))
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--long", type=int, default=500, help="steps of the long history")
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="dagger-kernel-bench-")
    rows: list[tuple[str, dict[str, float]]] = []
    try:
        clients: dict[str, Client] = {}
        cold: dict[str, float] = {}
        for subject in subjects():
            data_dir = os.path.join(scratch, subject.name)
            warm = Client(subject, data_dir)  # builds the base, which is not what is measured
            warm.run("print('base')", timeout=900)
            warm.close()
            client = Client(subject, data_dir)
            client.first_output("print('first')")
            cold[subject.name] = (time.perf_counter() - client.started) * 1000
            client.run(FRAME)
            clients[subject.name] = client
        rows.append(("start to first output", cold))
        for steps in (10, 100, args.long):
            for name, client in clients.items():
                if name != "ipykernel":
                    while client.client.is_alive() and done.setdefault(name, 2) < steps:
                        client.run("x += 1")
                        done[name] += 1
            for label, code in (("x += 1", "x += 1"), ("df.head()", "df.head()")):
                for mode, pause in (("back to back", 0.0), ("reading", 1.0)):
                    repeat = args.repeat if not pause else max(args.repeat // 2, 5)
                    got = measure(clients, code, repeat, pause)
                    for name in clients:
                        done[name] = done.get(name, 0) + repeat * (1 if pause else 2)
                    rows.append((f"{label}, {mode}, after {steps} steps", got))
        rows.append(("complete df.", {n: median([c.complete("df.he") for _ in range(5)]) for n, c in clients.items()}))
        rows.append(
            ("interrupt to reply", {n: median([c.interrupt("import time; time.sleep(60)", 1.0) for _ in range(3)]) for n, c in clients.items()})
        )
        for client in clients.values():
            client.close()
        rows.append(("cold replay of 50 steps", cold_replay(scratch)))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    show(rows, args.json)


done: dict[str, int] = {}


def cold_replay(scratch: str) -> dict[str, float]:
    """Return milliseconds from the request to the reply of a cell on 50 steps whose layers are gone."""
    took: dict[str, float] = {}
    for subject in subjects():
        if subject.name != "local":
            continue
        data_dir = os.path.join(scratch, subject.name)
        client = Client(subject, data_dir)
        client.run("x = 0")
        for _ in range(49):
            client.run("x += 1")
        sandbox = client.sandbox_id()
        client.close()
        drop_caches(data_dir)
        client = Client(subject, data_dir, sandbox)
        took[subject.name] = client.run("assert x == 49")
        client.close()
    return took


def show(rows: list[tuple[str, dict[str, float]]], path: str) -> None:
    """Print the table: milliseconds, and multiples of ipykernel's median."""
    print(f"{'':44}" + "".join(f"{name:>20}" for name in rows[0][1]))
    for label, values in rows:
        plain = values.get("ipykernel")
        cells = []
        for value in values.values():
            ratio = f" ({value / plain:4.1f}x)" if plain else ""
            cells.append(f"{value:9.1f} ms{ratio}".rjust(20))
        print(f"{label:44}" + "".join(cells))
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump([{"what": label, "ms": values} for label, values in rows], file, indent=1)


if __name__ == "__main__":
    main()

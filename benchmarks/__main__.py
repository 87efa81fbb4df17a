"""Run the benchmarks: ``python -m benchmarks [cells] [live] [state] [--help]``.

Without a name: all of them. What follows ``--`` goes to the one named benchmark.
"""

from __future__ import annotations

import argparse
import importlib

NAMES = ("cells", "live", "state")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], default=[], metavar="name")
    parser.add_argument("--quick", action="store_true", help="fewer repeats: a look, not a figure")
    args = parser.parse_args()
    for name in args.names or NAMES:
        print(f"\n== {name} ==", flush=True)
        importlib.import_module(f"benchmarks.{name}").main(quick=args.quick)


if __name__ == "__main__":
    main()

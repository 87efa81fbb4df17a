"""``python -m dagger_kernel_runner``: serve one step in a fresh interpreter."""

from __future__ import annotations

import argparse
import socket
import sys

from .dial import dial
from .entry import serve
from .preload import modules_of
from .protocol import EXIT_NO_STEP

LINGER_SECONDS = 20.0


def main(argv: list[str] | None = None) -> int:
    """Connect, serve, return the exit code."""
    parser = argparse.ArgumentParser(prog="dagger_kernel_runner", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", help="path of the kernel's Unix socket")
    where.add_argument("--fd", type=int, help="number of an inherited, connected socket")
    parser.add_argument("--nonce", required=True, help="identity of the execution, hexadecimal")
    parser.add_argument("--state-dir", default="/.dk")
    parser.add_argument("--home", default="/home/sandbox")
    parser.add_argument("--preload", default="", help="libraries to import while idle")
    parser.add_argument("--init", action="store_true", help="this is the init of a pid namespace")
    parser.add_argument("--alone", action="store_true", help="the pid namespace is this step's")
    parser.add_argument(
        "--memory-events", type=int, default=-1, help="descriptor of the step's memory.events"
    )
    options = parser.parse_args(argv)
    try:
        link = dial(options.socket) if options.socket else socket.socket(fileno=options.fd)
    except OSError as error:
        print(f"no kernel answers at {options.socket}: {error}", file=sys.stderr)
        return EXIT_NO_STEP
    return serve(
        link,
        options.nonce,
        state_dir=options.state_dir,
        home=options.home,
        is_init=options.init,
        alone=options.alone,
        preload=modules_of(options.preload.split()),
        linger=LINGER_SECONDS if options.socket else 0.0,
        memory_events=options.memory_events,
    )


if __name__ == "__main__":
    sys.exit(main())

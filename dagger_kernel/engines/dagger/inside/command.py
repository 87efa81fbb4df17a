"""The command line."""

from __future__ import annotations

import json
import os
import sys

from .arrivals import mount, put, unpack
from .bytecode import compile_bytecode, library
from .difference import TOO_LARGE, TooLargeError, pack
from .listing import list_directory
from .mirroring import mirror
from .wire import Wire, gather

LINK_LOST = 74
CLOSE_SECONDS = 30.0


def main() -> int:
    """Do what the command line says; return the exit code."""
    _, command, *rest = sys.argv
    os.umask(0o022)
    if command == "list":
        found = list_directory("/", rest[0], recursive="--recursive" in rest[1:])
        print(json.dumps(found, separators=(",", ":")))
    elif command == "pack":
        with open(rest[1], "wb") as out:
            try:
                pack("/", rest[0], out, int(rest[2]))
            except TooLargeError:
                return TOO_LARGE
    elif command == "mirror":
        mirror("/", rest[0])
    elif command == "compile":
        return 0 if compile_bytecode(rest[0], library()) else 1
    elif command in ("put", "unpack", "mount"):
        try:
            wire = Wire(rest[0], rest[1])
            if command == "put":
                put("/", wire.receive)
            elif command == "mount":
                mount("/", gather(wire))
            else:
                unpack("/", gather(wire))
            wire.send({"type": "done"})
            wire.sock.settimeout(CLOSE_SECONDS)
            wire.receive()  # "close": what is on its way when a process ends, Dagger drops
        except (OSError, ConnectionError) as error:
            print(f"{command}: {error!r}", file=sys.stderr)
            return LINK_LOST
    return 0

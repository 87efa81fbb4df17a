"""Take a ticket at a line of input, say each position, run until the next line.

argv: engine, running, queued.
"""

import sys

from dagger_kernel.errors import CapacityError
from dagger_kernel.log import Slots
from dagger_kernel.settings import Settings

engine, running, queued = sys.argv[1:]
slots = Slots(Settings.load(), engine, limits=lambda: (int(running), int(queued)))
print("ready", flush=True)
sys.stdin.readline()
try:
    ticket = slots.acquire(lambda place: print(f"place {place}", flush=True), timeout=60)
except CapacityError as error:
    print(f"refused {error.running} {error.queued}", flush=True)
    sys.exit()
print("runs", flush=True)
sys.stdin.readline()
ticket.release()

"""Take a ticket, say each position, run when told to be short (a line of input starts it): argv is engine, running, queued, seconds."""

import sys
import time

from dagger_kernel.errors import CapacityError
from dagger_kernel.log import Slots
from dagger_kernel.settings import Settings

engine, running, queued, seconds = sys.argv[1:]
slots = Slots(Settings.load(), engine, limits=lambda: (int(running), int(queued)))
print("ready", flush=True)
sys.stdin.readline()
try:
    ticket = slots.acquire(lambda place: print(f"place {place}", flush=True), timeout=60)
except CapacityError as error:
    print(f"refused {error.running} {error.queued}", flush=True)
    sys.exit()
print(f"runs {time.monotonic()}", flush=True)
time.sleep(float(seconds))
print(f"ends {time.monotonic()}", flush=True)
ticket.release()

"""Hold a sandbox's lock until killed."""

import sys
import time

from dagger_kernel.log import SandboxLock
from dagger_kernel.settings import Settings

SandboxLock(Settings.load(), sys.argv[1]).acquire(timeout=30)
print("held", flush=True)
time.sleep(600)

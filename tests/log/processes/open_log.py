"""Open the log and make a sandbox; say the error that comes of it."""

from dagger_kernel.errors import DaggerKernelError
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings

try:
    log = open_log(Settings.load())
    log.create_sandbox("process")
    log.close()
    print("opened")
except DaggerKernelError as error:
    print(f"{type(error).__name__}: {error}")

"""Open the log and make one sandbox."""

from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings

log = open_log(Settings.load())
log.create_sandbox("process")
log.close()
print("opened")

"""Append until the size of files is limited to argv[1] bytes; say what came of it."""

import resource
import sys
import uuid

from dagger_kernel.errors import StorageFullError
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings
from dagger_kernel.steps import Kind, Result, Status, Step

log = open_log(Settings.load())
sandbox = log.create_sandbox("process")
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
parent, count = None, 0


def cell():
    step = Step(
        id=uuid.uuid4().hex, sandbox_id=sandbox.id, seq=0, parent_id=parent, kind=Kind.CELL, nonce="n",
        base_digest="b", runner_digest="r", engine="local", key="k", source="x" * 5000,
    )  # fmt: skip
    log.append(step)
    log.finish(Result(step_id=step.id, status=Status.OK))
    return step.id


try:
    while True:
        parent = cell()
        count += 1
except StorageFullError as error:
    print(error)
try:
    log.blobs.put(b"x" * (limit + 1))
except StorageFullError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
finished = sum(result is not None for _, result in log.steps(sandbox.id, limit=10000))
assert finished == count > 0, (finished, count)
tip = log.tip(sandbox.id)
assert tip.id == parent
cell()
assert log.verify() == []
log.close()
print("went on")

"""``dagger-kernel purge``: the only deletion there is."""

from __future__ import annotations

import getpass
import sys

from dagger_kernel.engines.local.layers import LayerStore
from dagger_kernel.log import SandboxLock
from dagger_kernel.settings import Settings

from . import data, output
from .exits import ExitCode


def run(sandbox: str, *, confirmed: bool, as_json: bool) -> None:
    """Delete a sandbox's steps, results, files and layers; a tombstone says when, by whom and how many."""
    settings = Settings.load()
    with data.opened_log(settings) as store:
        row = data.find_sandbox(store, sandbox)
        if row.state == "purged":
            print(f"The sandbox {row.id} was purged before.", file=sys.stderr)
            sys.exit(ExitCode.NOT_FOUND)
        if not confirmed:
            print(
                f"This deletes the {row.steps} steps of the sandbox {row.id} ({output.one_line(row.notebook)}) of "
                f"{output.one_line(row.owner)}, with all their files, for good. Say so with --yes.",
                file=sys.stderr,
            )
            sys.exit(ExitCode.REFUSED)
        lock = SandboxLock(settings, row.id)
        lock.acquire()
        try:
            keys = [step.key for step, _ in data.history(store, row.id) if step.kind != "rewind"]
            store.purge_sandbox(row.id, by=getpass.getuser())
        finally:
            lock.release()
        if settings.layers_path.is_dir():
            LayerStore(settings.layers_path).evict(keys)
    if as_json:
        output.print_json({"sandbox": row.id, "steps": row.steps})
    else:
        print(f"Purged the sandbox {row.id}: {row.steps} steps. Its tombstone stays in the log.")

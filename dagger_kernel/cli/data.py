"""Looking things up in the log, as people name them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dagger_kernel.errors import SandboxNotFoundError, StepNotFoundError
from dagger_kernel.log import LogStore, SandboxRow, open_log
from dagger_kernel.log.database import Database
from dagger_kernel.settings import Settings
from dagger_kernel.steps import Result, Step

PAGE = 500


@contextlib.contextmanager
def opened_log(settings: Settings | None = None, *, create: bool = False) -> Iterator[LogStore]:
    """Open the log that the settings name, and close it. One of an older version is migrated.

    Parameters
    ----------
    create
        Whether to make a log where there is none.
    """
    settings = settings or Settings.load()
    store = open_log(settings, create=create or log_exists(settings))
    try:
        yield store
    finally:
        store.close()


def log_exists(settings: Settings) -> bool:
    """Whether there is a log; a database server is asked by opening it."""
    path = Database.from_settings(settings).path
    return path is None or path.exists()


def find_sandbox(store: LogStore, name: str) -> SandboxRow:
    """Return the sandbox with this id, beginning of an id, or notebook; ``latest``: the last active.

    Raises
    ------
    SandboxNotFoundError
        There is none, or a beginning fits several.
    """
    recent = (
        store.sandboxes(limit=1) if name == "latest" else store.sandboxes(notebook=name, limit=1)
    )
    if recent:
        return recent[0]
    if name == "latest":
        raise SandboxNotFoundError(name)
    return store.sandbox(name)


def history(
    store: LogStore, sandbox_id: str, *, outputs: bool = False
) -> Iterator[tuple[Step, Result | None]]:
    """Yield every step of a sandbox with its result, in order."""
    after = 0
    while rows := store.steps(sandbox_id, after=after, limit=PAGE, outputs=outputs):
        yield from rows
        after = rows[-1][0].seq


def find_step(store: LogStore, sandbox_id: str, name: str) -> tuple[Step, Result | None]:
    """Return the step with this number, id or beginning of an id; ``latest``: the last.

    Raises
    ------
    StepNotFoundError
        There is none, or a beginning fits several.
    """
    if name.isascii() and name.isdigit() and len(name) < 8:
        found = [int(name)]
    elif name == "latest":
        found = [step.seq for step, _result in history(store, sandbox_id)][-1:]
    else:
        found = [step.seq for step, _ in history(store, sandbox_id) if step.id.startswith(name)]
    rows = store.steps(sandbox_id, after=found[0] - 1, limit=1) if len(found) == 1 else []
    if not rows or rows[0][0].seq != found[0]:
        raise StepNotFoundError(name)
    return rows[0]

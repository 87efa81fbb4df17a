"""Looking things up in the log, as people name them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dagger_kernel.errors import SandboxNotFoundError, StepNotFoundError
from dagger_kernel.settings import Settings
from dagger_kernel.steps import Result, Step

PAGE = 500


@contextlib.contextmanager
def opened_log(settings: Settings | None = None) -> Iterator[Any]:
    """Open the log that the settings name, and close it."""
    from dagger_kernel.log import open_log

    store = open_log(settings or Settings.load())
    try:
        yield store
    finally:
        store.close()


def find_sandbox(store: Any, name: str) -> Any:
    """Return the sandbox with this id, beginning of an id, or notebook; ``latest``: the newest.

    Raises
    ------
    SandboxNotFoundError
        There is none, or a beginning fits several.
    """
    sandboxes = sorted(store.sandboxes(), key=lambda sandbox: sandbox.created)
    if name == "latest":
        found = sandboxes[-1:]
    else:
        found = [one for one in sandboxes if one.id == name]
        found = found or [one for one in sandboxes if one.notebook and one.notebook == name][-1:]
        found = found or [one for one in sandboxes if one.id.startswith(name)]
    if len(found) != 1:
        raise SandboxNotFoundError(name)
    return found[0]


def history(store: Any, sandbox_id: str) -> Iterator[tuple[Step, Result | None]]:
    """Yield every step of a sandbox with its result, in order."""
    after = 0
    while rows := store.steps(sandbox_id, after=after, limit=PAGE):
        yield from rows
        after = rows[-1][0].seq


def find_step(store: Any, sandbox_id: str, name: str) -> tuple[Step, Result | None]:
    """Return the step with this number, id or beginning of an id; ``latest``: the last.

    Raises
    ------
    StepNotFoundError
        There is none, or a beginning fits several.
    """
    rows = list(history(store, sandbox_id))
    if name == "latest":
        found = rows[-1:]
    elif name.isascii() and name.isdigit() and len(name) < 8:
        found = [row for row in rows if row[0].seq == int(name)]
    else:
        found = [row for row in rows if row[0].id.startswith(name)]
    if len(found) != 1:
        raise StepNotFoundError(name)
    return found[0]

"""Sandboxes, what ends them, and the kernels' starts on them."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError

from ..errors import LogError, StepNotFoundError
from . import tables as t
from .database import Database
from .heads import add_event
from .rows import GENESIS, dump, now, row_hash

_TRIES = 100


class Registry:
    """Inserts sandboxes. `dagger_kernel.log.LogStore` documents the methods for callers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_sandbox(self, owner: str, notebook: str, parent_step: str | None) -> str:
        """Insert a sandbox and its head; return its id."""
        identity, created = uuid.uuid4().hex, now()
        values: dict[str, Any] = {
            "id": identity,
            "owner": dump(owner),
            "notebook": dump(notebook),
            "created": created,
            "parent_step": parent_step,
        }
        values["hash"] = row_hash("sandbox", values | {"previous": GENESIS})
        head = {"sandbox_id": identity, "seq": 0, "entry": 0, "hash": values["hash"]}
        mine = select(t.sandbox.c.id).where(t.sandbox.c.id == identity)
        parent = select(t.step.c.id).where(t.step.c.id == parent_step)

        def work(connection: Connection, repeated: bool) -> None:
            if repeated and connection.scalar(mine):
                return
            if parent_step is not None and connection.scalar(parent) is None:
                raise StepNotFoundError(parent_step)
            connection.execute(insert(t.sandbox), values)
            connection.execute(insert(t.head), head | {"state": "open", "updated": created})

        self._database.run(work, write=True)
        return identity

    def end_sandbox(self, sandbox_id: str) -> None:
        """Insert the event that a restart ended a sandbox."""

        def work(connection: Connection, _repeated: bool) -> None:
            add_event(connection, sandbox_id, "end", {}, state="ended")

        self._database.run(work, write=True)

    def start_session(self, owner: str, sandbox_id: str) -> int:
        """Insert a kernel's start; return its number, counted per owner from 1."""
        encoded = dump(owner)
        sessions = t.kernel_session
        highest = select(func.max(sessions.c.number)).where(sessions.c.owner == encoded)

        def work(connection: Connection, _repeated: bool) -> int:
            number = int(connection.scalar(highest) or 0) + 1
            row = {"owner": encoded, "number": number, "sandbox_id": sandbox_id}
            connection.execute(insert(sessions), row | {"started": now()})
            return number

        # On PostgreSQL kernels that start together may choose the same number: one gets it.
        for left in reversed(range(_TRIES)):
            try:
                return self._database.run(work, write=True)
            except LogError as error:
                if left == 0 or not isinstance(error.__cause__, IntegrityError):
                    raise
        raise AssertionError

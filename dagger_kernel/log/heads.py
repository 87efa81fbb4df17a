"""A sandbox's head: the row that knows its chain's end, and that writers take turns on."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Label, RowMapping, bindparam, insert, select, update

from ..errors import LogError, SandboxNotFoundError
from . import tables as t
from .rows import dump, now, row_hash


def _found(name: str) -> Label[str]:
    """Return the id of the step a parameter names, or null."""
    step = t.step.alias(name)
    return select(step.c.id).where(step.c.id == bindparam(name)).scalar_subquery().label(name)


_WITH_STEPS = ("parent", "origin", "itself")
_HEAD = (
    select(t.head, t.sandbox.c.parent_step, *(_found(name) for name in _WITH_STEPS))
    .join(t.sandbox, t.sandbox.c.id == t.head.c.sandbox_id)
    .where(t.head.c.sandbox_id == bindparam("sandbox"))
    .with_for_update(of=t.head)
)
_HEAD_OF_STEP = (
    select(t.head, t.result.c.step_id.label("done"))
    .select_from(
        t.step.join(t.head, t.head.c.sandbox_id == t.step.c.sandbox_id).outerjoin(
            t.result, t.result.c.step_id == t.step.c.id
        )
    )
    .where(t.step.c.id == bindparam("step"))
    .with_for_update(of=t.head)
)
_MOVE = (
    update(t.head)
    .where(t.head.c.sandbox_id == bindparam("sandbox"))
    .values(
        seq=bindparam("to_seq"),
        entry=bindparam("to_entry"),
        hash=bindparam("to_hash"),
        state=bindparam("to_state"),
        updated=bindparam("to_updated"),
    )
)
_INSERT_EVENT = insert(t.event)


def lock_head(
    connection: Connection,
    sandbox_id: str,
    *,
    parent: str | None = None,
    origin: str | None = None,
    itself: str | None = None,
) -> RowMapping:
    """Return a sandbox's head, locked against other writers until the transaction ends.

    It carries the ids of the three steps where they exist, and the sandbox's ``parent_step``.

    Raises
    ------
    SandboxNotFoundError
        There is no such sandbox.
    LogError
        It was purged.
    """
    wanted = {"sandbox": sandbox_id, "parent": parent, "origin": origin, "itself": itself}
    head = connection.execute(_HEAD, wanted).mappings().first()
    if head is None:
        raise SandboxNotFoundError(sandbox_id)
    return _not_purged(head)


def lock_head_of_step(connection: Connection, step_id: str) -> RowMapping | None:
    """Return the head of a step's sandbox, locked, with ``done``: null if the step has no result.

    Raises
    ------
    LogError
        The sandbox was purged.
    """
    head = connection.execute(_HEAD_OF_STEP, {"step": step_id}).mappings().first()
    return None if head is None else _not_purged(head)


def place(table: str, values: dict[str, Any], head: RowMapping) -> dict[str, Any]:
    """Return a row with its place in the hash chain, behind the head."""
    placed = values | {"entry": head["entry"] + 1, "previous": head["hash"]}
    placed["hash"] = row_hash(table, placed)
    return placed


def move_head(
    connection: Connection,
    head: RowMapping,
    placed: dict[str, Any],
    *,
    updated: str,
    state: str | None = None,
) -> None:
    """Move the head to the row that was just inserted."""
    connection.execute(
        _MOVE,
        {
            "sandbox": head["sandbox_id"],
            "to_seq": placed.get("seq", head["seq"]),
            "to_entry": placed["entry"],
            "to_hash": placed["hash"],
            "to_state": state or head["state"],
            # A clock that was set back must not make a sandbox look older than its last row.
            "to_updated": max(updated, head["updated"]),
        },
    )


def add_event(
    connection: Connection, sandbox_id: str, kind: str, payload: dict[str, Any], *, state: str
) -> None:
    """Insert an event that brings a sandbox to a state; nothing if it is in that state."""
    head = lock_head(connection, sandbox_id)
    if head["state"] == state:
        return
    values = {"sandbox_id": sandbox_id, "kind": kind, "payload": dump(payload), "created": now()}
    placed = place("event", values, head)
    connection.execute(_INSERT_EVENT, placed)
    move_head(connection, head, placed, updated=values["created"], state=state)


def _not_purged(head: RowMapping) -> RowMapping:
    if head["state"] == "purged":
        raise LogError(f"The sandbox {head['sandbox_id']} was purged.")
    return head

"""Appending to the log: every write is one short transaction that moves one sandbox's head."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import UTC
from typing import Any

from sqlalchemy import Connection, Label, RowMapping, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..errors import LogError, SandboxNotFoundError, StepNotFoundError
from ..steps import Kind, Result, Step, digest_bytes
from . import tables as t
from .blobs import BlobStore
from .database import Database
from .rows import GENESIS, dump, now, read_step, result_values, row_hash, step_values
from .tables import is_settled

INLINE_BYTES = 64 * 1024
"""Outputs above this size lie in the blob store."""


def _found(name: str) -> Label[str]:
    """Return the id of the step a parameter names, or null."""
    step = t.step.alias(name)
    return select(step.c.id).where(step.c.id == bindparam(name)).scalar_subquery().label(name)


_HEAD = (
    select(
        t.head,
        t.sandbox.c.parent_step,
        _found("parent"),
        _found("origin"),
    )
    .join(t.sandbox, t.sandbox.c.id == t.head.c.sandbox_id)
    .where(t.head.c.sandbox_id == bindparam("sandbox"))
    .with_for_update(of=t.head)
)
_STEP_SANDBOX = select(t.step.c.sandbox_id).where(t.step.c.id == bindparam("step"))
_STEP = select(t.step).where(t.step.c.id == bindparam("step"))
_TIP = (
    select(t.step.c.id)
    .outerjoin(t.result, t.result.c.step_id == t.step.c.id)
    .where(t.step.c.sandbox_id == bindparam("sandbox"), is_settled())
    .order_by(t.step.c.seq.desc())
    .limit(1)
)
_RESULT = select(t.result).where(t.result.c.step_id == bindparam("step"))
_MOVE = (
    update(t.head)
    .where(t.head.c.sandbox_id == bindparam("sandbox"), t.head.c.entry == bindparam("was"))
    .values(
        seq=bindparam("to_seq"),
        entry=bindparam("to_entry"),
        hash=bindparam("to_hash"),
        state=bindparam("to_state"),
        updated=bindparam("to_updated"),
    )
)
_INSERT_STEP = insert(t.step)
_INSERT_RESULT = insert(t.result)
_INSERT_EVENT = insert(t.event)
_INSERT_ARTIFACTS = insert(t.artifact)


class Writer:
    """Appends rows. `dagger_kernel.log.LogStore` documents the methods for callers."""

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self._database, self._blobs = database, blobs

    def create_sandbox(self, owner: str, notebook: str, parent_step: str | None) -> str:
        """Insert a sandbox and its head; return its id."""
        created = now()
        values: dict[str, Any] = {
            "id": uuid.uuid4().hex,
            "owner": dump(owner),
            "notebook": dump(notebook),
            "created": created,
            "parent_step": parent_step,
        }
        values["hash"] = row_hash("sandbox", values | {"previous": GENESIS})
        identity = str(values["id"])

        def work(connection: Connection, repeated: bool) -> None:
            if (
                repeated
                and connection.scalar(select(t.head.c.seq).where(t.head.c.sandbox_id == identity))
                is not None
            ):
                return
            if parent_step and not connection.scalar(_STEP_SANDBOX, {"step": parent_step}):
                raise StepNotFoundError(parent_step)
            connection.execute(insert(t.sandbox), values)
            head = {"seq": 0, "entry": 0, "hash": values["hash"], "state": "open"}
            connection.execute(insert(t.head), head | {"sandbox_id": identity, "updated": created})

        self._database.run(work, write=True)
        return identity

    def append(self, step: Step, *, on_tip: bool) -> Step:
        """Insert a step at the end of its sandbox."""
        values = step_values(step)
        files = uploads(step.kind, step.payload)
        for item in files:
            item["size"] = self._blobs.size(item["blob"])

        def work(connection: Connection, _repeated: bool) -> Step:
            head = self._head(connection, step.sandbox_id, step.parent_id, values["origin_id"])
            for name, wanted in (("parent", step.parent_id), ("origin", values["origin_id"])):
                if head[name] != wanted:
                    raise StepNotFoundError(str(wanted))
            stored = connection.execute(_STEP, {"step": step.id}).mappings().one_or_none()
            if stored is not None:
                # The same step again: the caller repeats an append whose outcome it does not know.
                same = values | {"seq": stored["seq"]}
                if any(stored[name] != value for name, value in same.items()):
                    raise LogError(f"The step {step.id} is in the log with other content.")
                return read_step(stored)
            if on_tip and step.parent_id != self._tip_id(connection, head):
                raise LogError(
                    f"The sandbox {step.sandbox_id} has moved on: the step does not continue its tip."
                )
            placed = self._place("step", values | {"seq": head["seq"] + 1}, head)
            connection.execute(_INSERT_STEP, placed)
            self._artifacts(connection, step.sandbox_id, step.id, files)
            self._move(connection, head, placed, updated=values["created"])
            return replace(step, seq=placed["seq"], created=step.created.astimezone(UTC))

        return self._database.run(work, write=True)

    def finish(self, result: Result) -> Result:
        """Insert a step's result and artifacts."""
        text = dump(result.outputs)
        data = text.encode("ascii")
        values = result_values(result) | {
            "outputs": text if len(data) <= INLINE_BYTES else None,
            "outputs_digest": digest_bytes(data),
        }
        if values["outputs"] is None:
            self._blobs.put(data)
        if result.layer is not None:
            self._blobs.size(result.layer)
        files = exports([asdict(item) for item in result.files])
        for item in files:
            item["size"] = self._blobs.size(item["blob"])

        def work(connection: Connection, repeated: bool) -> Result:
            sandbox_id = connection.scalar(_STEP_SANDBOX, {"step": result.step_id})
            if sandbox_id is None:
                raise StepNotFoundError(result.step_id)
            head = self._head(connection, sandbox_id)
            stored = connection.execute(_RESULT, {"step": result.step_id}).mappings().one_or_none()
            if stored is not None:
                if repeated and all(stored[name] == value for name, value in values.items()):
                    return result
                raise LogError(f"The step {result.step_id} has a result already.")
            placed = self._place("result", values | {"sandbox_id": sandbox_id}, head)
            connection.execute(_INSERT_RESULT, placed)
            extra = [(digest, self._blobs.size(digest)) for digest in _others(values)]
            self._artifacts(connection, sandbox_id, result.step_id, files, extra)
            self._move(connection, head, placed, updated=values["finished"])
            return replace(result, finished=result.finished.astimezone(UTC))

        return self._database.run(work, write=True)

    def event(
        self, sandbox_id: str, kind: str, payload: dict[str, Any], *, state: str | None = None
    ) -> None:
        """Insert an event of a sandbox, and set its state."""

        def work(connection: Connection, _repeated: bool) -> None:
            self.add_event(connection, sandbox_id, kind, payload, state=state)

        self._database.run(work, write=True)

    def add_event(
        self,
        connection: Connection,
        sandbox_id: str,
        kind: str,
        payload: dict[str, Any],
        *,
        state: str | None = None,
    ) -> None:
        """Insert an event in the caller's transaction."""
        head = self._head(connection, sandbox_id)
        if state is not None and head["state"] == state:
            return  # repeated: it is so already
        values = {
            "sandbox_id": sandbox_id,
            "kind": kind,
            "payload": dump(payload),
            "created": now(),
        }
        placed = self._place("event", values, head)
        connection.execute(_INSERT_EVENT, placed)
        self._move(connection, head, placed, updated=values["created"], state=state)

    def start_session(self, owner: str, sandbox_id: str) -> int:
        """Insert a kernel's start; return its number, counted per owner from 1."""
        encoded = dump(owner)
        highest = select(func.max(t.kernel_session.c.number)).where(
            t.kernel_session.c.owner == encoded
        )

        def work(connection: Connection, _repeated: bool) -> int:
            number = int(connection.scalar(highest) or 0) + 1
            connection.execute(
                insert(t.kernel_session),
                {"owner": encoded, "number": number, "sandbox_id": sandbox_id, "started": now()},
            )
            return number

        # On PostgreSQL two kernels that start together may choose the same number: one is refused.
        for _attempt in range(100):
            try:
                return self._database.run(work, write=True)
            except LogError as error:
                if not isinstance(error.__cause__, IntegrityError):
                    raise
                last = error
        raise last

    @staticmethod
    def _tip_id(connection: Connection, head: RowMapping) -> str | None:
        tip = connection.scalar(_TIP, {"sandbox": head["sandbox_id"]})
        return head["parent_step"] if tip is None else str(tip)

    @staticmethod
    def _head(
        connection: Connection,
        sandbox_id: str,
        parent: str | None = None,
        origin: str | None = None,
    ) -> RowMapping:
        """Return a sandbox's head, locked against other writers until the transaction ends."""
        wanted = {"sandbox": sandbox_id, "parent": parent, "origin": origin}
        row = connection.execute(_HEAD, wanted).mappings().first()
        if row is None:
            raise SandboxNotFoundError(sandbox_id)
        if row["state"] == "purged":
            raise LogError(f"The sandbox {sandbox_id} was purged.")
        return row

    @staticmethod
    def _place(table: str, values: dict[str, Any], head: RowMapping) -> dict[str, Any]:
        """Return the row with its place in the hash chain."""
        placed = values | {"entry": head["entry"] + 1, "previous": head["hash"]}
        placed["hash"] = row_hash(table, placed)
        return placed

    @staticmethod
    def _move(
        connection: Connection,
        head: RowMapping,
        placed: dict[str, Any],
        *,
        updated: str,
        state: str | None = None,
    ) -> None:
        connection.execute(
            _MOVE,
            {
                "sandbox": head["sandbox_id"],
                "was": head["entry"],
                "to_seq": placed.get("seq", head["seq"]),
                "to_entry": placed["entry"],
                "to_hash": placed["hash"],
                "to_state": state or head["state"],
                # A clock that was set back must not make a sandbox look older than its last row.
                "to_updated": max(updated, head["updated"]),
            },
        )

    def _artifacts(
        self,
        connection: Connection,
        sandbox_id: str,
        step_id: str,
        files: list[dict[str, Any]],
        extra: Iterable[tuple[str, int]] = (),
    ) -> None:
        """Insert the rows of the blobs a step refers to, and of its files."""
        sizes = {item["blob"]: item["size"] for item in files} | dict(extra)
        if not sizes:
            return
        rows = [
            {"digest": digest, "size": size, "location": self._blobs.location}
            for digest, size in sorted(sizes.items())  # one order: no deadlock between writers
        ]
        connection.execute(self._insert_blobs(connection), rows)
        if files:
            owner = {"sandbox_id": sandbox_id, "step_id": step_id}
            connection.execute(_INSERT_ARTIFACTS, [item | owner for item in files])

    @staticmethod
    def _insert_blobs(connection: Connection) -> Any:
        if connection.dialect.name == "sqlite":
            from sqlalchemy.dialects import sqlite

            return sqlite.insert(t.blob).on_conflict_do_nothing()
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(t.blob).on_conflict_do_nothing()


def exports(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the artifact rows of a result's ``files``."""
    return [
        {
            "role": "export",
            "number": number,
            "path": dump(item["path"]),
            "blob": item["blob"],
            "mime": dump(item["mime"]),
            "mode": item["mode"],
        }
        for number, item in enumerate(files)
        if item["blob"] is not None
    ]


def uploads(kind: str, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the artifact rows of a step's payload."""
    if kind != Kind.UPLOAD:
        return []
    return [
        {
            "role": "upload",
            "number": number,
            "path": dump(item["path"]),
            "blob": item["blob"],
            "mime": dump(item.get("mime", "application/octet-stream")),
            "mode": item.get("mode", 0o644),
        }
        for number, item in enumerate(payload.get("files", ()))
    ]


def _others(values: dict[str, Any]) -> Iterable[str]:
    """Return the blobs of a result besides its files."""
    if values["outputs"] is None:
        yield values["outputs_digest"]
    if values["layer"] is not None:
        yield values["layer"]

"""Appending steps and results: each one short transaction that moves one sandbox's head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from ..errors import LogError, StepNotFoundError
from ..steps import Kind, Result, Step, digest_bytes
from . import tables as t
from .artifacts import exports, insert_artifacts, uploads
from .blobs import BlobStore
from .database import Database
from .heads import lock_head, lock_head_of_step, move_head, place
from .rows import dump, read_step, result_values, step_values

INLINE_BYTES = 64 * 1024
"""Outputs above this size lie in the blob store."""

T = TypeVar("T")

_STEP = select(t.step).where(t.step.c.id == bindparam("step"))
_RESULT = select(t.result).where(t.result.c.step_id == bindparam("step"))
_TIP = (
    select(t.step.c.id)
    .outerjoin(t.result, t.result.c.step_id == t.step.c.id)
    .where(t.step.c.sandbox_id == bindparam("sandbox"), t.is_settled())
    .order_by(t.step.c.seq.desc())
    .limit(1)
)
_INSERT_STEP = insert(t.step)
_INSERT_RESULT = insert(t.result)


class Writer:
    """Appends rows. `dagger_kernel.log.LogStore` documents the methods for callers."""

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self._database, self._blobs = database, blobs

    def append(self, step: Step, *, on_tip: bool) -> Step:
        """Insert a step at the end of its sandbox."""
        values = step_values(step)
        files = self._sized(uploads(step.kind, step.payload))
        steps = {"parent": step.parent_id, "origin": values["origin_id"]}

        def work(connection: Connection, _repeated: bool) -> Step:
            head = lock_head(connection, step.sandbox_id, **steps, itself=step.id)
            for name, wanted in steps.items():
                if head[name] != wanted:
                    raise StepNotFoundError(str(wanted))
            if head["itself"] is not None:
                return _stored(connection, step, values)
            if on_tip and step.parent_id != _tip_id(connection, head):
                raise LogError(
                    f"The sandbox {step.sandbox_id} has moved on: the step does not continue its tip."
                )
            placed = place("step", values | {"seq": head["seq"] + 1}, head)
            connection.execute(_INSERT_STEP, placed)
            self._insert_artifacts(connection, files, (), step.sandbox_id, step.id)
            move_head(connection, head, placed, updated=values["created"])
            return replace(step, seq=placed["seq"], created=step.created.astimezone(UTC))

        # A cell's result follows; an upload's bytes are nowhere else.
        return self._run(work, durable=step.kind is not Kind.CELL)

    def finish(self, result: Result) -> Result:
        """Insert a step's result and artifacts."""
        values = result_values(result) | self._outputs(result)
        files = self._sized(exports([asdict(item) for item in result.files]))
        others = [(digest, self._blobs.size(digest)) for digest in _other_blobs(values)]
        uncertain = False

        def work(connection: Connection, repeated: bool) -> Result:
            nonlocal uncertain
            uncertain = uncertain or repeated
            head = lock_head_of_step(connection, result.step_id)
            if head is None:
                raise StepNotFoundError(result.step_id)
            if head["done"] is not None:
                stored = connection.execute(_RESULT, {"step": result.step_id}).mappings().one()
                if uncertain and _agrees(stored, values):
                    return result  # the attempt whose answer was lost had been committed
                raise LogError(f"The step {result.step_id} has a result already.")
            sandbox_id = head["sandbox_id"]
            placed = place("result", values | {"sandbox_id": sandbox_id}, head)
            connection.execute(_INSERT_RESULT, placed)
            self._insert_artifacts(connection, files, others, sandbox_id, result.step_id)
            move_head(connection, head, placed, updated=values["finished"])
            return replace(result, finished=result.finished.astimezone(UTC))

        return self._run(work, durable=False)

    def _run(self, work: Callable[[Connection, bool], T], *, durable: bool) -> T:
        try:
            return self._database.run(work, write=True, durable=durable)
        except LogError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
        # On PostgreSQL a statement that waited for the head does not see the row that was inserted
        # meanwhile and is the same as ours. It is there now: look again, and tell what it is.
        return self._database.run(work, write=True, durable=durable)

    def _outputs(self, result: Result) -> dict[str, Any]:
        """Return the columns of a result's outputs; store them if they are large."""
        text = dump(result.outputs)
        data = text.encode("ascii")
        large = len(data) > INLINE_BYTES
        digest = self._blobs.put(data) if large else digest_bytes(data)
        return {"outputs": None if large else text, "outputs_digest": digest}

    def _sized(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return artifact rows with the sizes of their blobs, which must be in the blob store."""
        return [item | {"size": self._blobs.size(item["blob"])} for item in rows]

    def _insert_artifacts(
        self,
        connection: Connection,
        files: list[dict[str, Any]],
        others: Any,
        sandbox_id: str,
        step_id: str,
    ) -> None:
        location = self._blobs.location
        insert_artifacts(
            connection, files, others, sandbox_id=sandbox_id, step_id=step_id, location=location
        )


def _stored(connection: Connection, step: Step, values: dict[str, Any]) -> Step:
    """Return the step of this id: the caller repeats an append whose outcome it does not know."""
    stored = connection.execute(_STEP, {"step": step.id}).mappings().one()
    if not _agrees(stored, values | {"seq": stored["seq"]}):
        raise LogError(f"The step {step.id} is in the log with other content.")
    return read_step(stored)


def _tip_id(connection: Connection, head: RowMapping) -> str | None:
    tip = connection.scalar(_TIP, {"sandbox": head["sandbox_id"]})
    return head["parent_step"] if tip is None else str(tip)


def _agrees(row: RowMapping, values: dict[str, Any]) -> bool:
    return all(row[name] == value for name, value in values.items())


def _other_blobs(values: dict[str, Any]) -> list[str]:
    """Return the blobs of a result besides its files."""
    outputs = [values["outputs_digest"]] if values["outputs"] is None else []
    return outputs + ([values["layer"]] if values["layer"] is not None else [])

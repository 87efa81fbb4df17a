"""Reading the log: tip, chain, listings. No query's cost grows with the log but by what it returns."""

from __future__ import annotations

import json
import re
from collections.abc import Container
from datetime import datetime
from itertools import chain, repeat
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    bindparam,
    literal,
    select,
)

from ..errors import SandboxNotFoundError, StepNotFoundError
from ..steps import Result, Step
from . import tables as t
from .blobs import BlobStore
from .database import Database
from .rows import Artifact, Row, SandboxRow, dump, read_result, read_step

Pair = tuple[Step, Result | None]

PREFIX = "result_"
_ID_PREFIX = re.compile("[0-9a-f]{6,31}")

_PAGES = (4, 32, 256, 2048)
"""How many steps `Reader.chain_since` fetches at a time: a new step needs few, a new process all."""

_COLUMNS = (*t.step.c, *(column.label(PREFIX + column.name) for column in t.result.c))
_PAIR = select(*_COLUMNS).select_from(t.step.outerjoin(t.result, t.result.c.step_id == t.step.c.id))
_ONE = _PAIR.where(t.step.c.id == bindparam("step"))
_TIP = (
    _PAIR.where(
        t.step.c.sandbox_id == bindparam("sandbox"),
        t.is_settled(),
    )
    .order_by(t.step.c.seq.desc())
    .limit(1)
)
_STEPS = (
    _PAIR.where(t.step.c.sandbox_id == bindparam("sandbox"), t.step.c.seq > bindparam("after"))
    .order_by(t.step.c.seq)
    .limit(bindparam("count"))
)
_SANDBOX = select(t.sandbox, t.head.c.seq, t.head.c.updated, t.head.c.state).join(
    t.head, t.head.c.sandbox_id == t.sandbox.c.id
)


def _chain_query() -> Select[Any]:
    """Return the query of a chain's last ``count`` steps, walking back from ``step``."""
    walk = (
        select(t.step.c.id, t.step.c.origin_id, literal(1).label("depth"))
        .where(t.step.c.id == bindparam("step"))
        .cte("walk", recursive=True)
    )
    walk = walk.union_all(
        select(t.step.c.id, t.step.c.origin_id, walk.c.depth + 1)
        .join(walk, t.step.c.id == walk.c.origin_id)
        .where(walk.c.depth < bindparam("count"))
    )
    return (
        select(*_COLUMNS)
        .select_from(
            # An outer join, though each step exists: it makes SQLite start from the walk and not
            # from the whole table.
            walk.outerjoin(t.step, t.step.c.id == walk.c.id).outerjoin(
                t.result, t.result.c.step_id == t.step.c.id
            )
        )
        .order_by(walk.c.depth)
    )


_CHAIN = _chain_query()


class Reader:
    """Reads rows. `dagger_kernel.log.LogStore` documents the methods for callers."""

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self._database, self._blobs = database, blobs

    def sandbox(self, sandbox_id: str) -> SandboxRow:
        """Return a sandbox by its id or a unique prefix of it."""
        query = _SANDBOX.where(t.sandbox.c.id == sandbox_id)
        if _ID_PREFIX.fullmatch(sandbox_id):
            # A range, so that the primary key's index serves it on both databases.
            query = _SANDBOX.where(
                t.sandbox.c.id >= sandbox_id, t.sandbox.c.id < sandbox_id + "g"
            ).limit(2)
        rows = self._rows(query)
        if len(rows) != 1:
            raise SandboxNotFoundError(sandbox_id)
        return _read_sandbox(rows[0])

    def sandboxes(
        self, owner: str | None, notebook: str | None, limit: int, *, state: str | None = None
    ) -> list[SandboxRow]:
        """Return sandboxes, the last active one first."""
        query = _SANDBOX.order_by(t.head.c.updated.desc(), t.sandbox.c.created.desc()).limit(limit)
        if owner is not None:
            query = query.where(t.sandbox.c.owner == dump(owner))
        if notebook is not None:
            query = query.where(t.sandbox.c.notebook == dump(notebook))
        wanted = t.head.c.state != "purged" if state is None else t.head.c.state == state
        query = query.where(wanted)
        return [_read_sandbox(row) for row in self._rows(query)]

    def pair(self, step_id: str) -> Pair:
        """Return a step and its result."""
        rows = self._rows(_ONE, step=step_id)
        if not rows:
            raise StepNotFoundError(step_id)
        return self._pair(rows[0])

    def find(self, key: str) -> Pair | None:
        """Return the first step that led to a key and has a result."""
        query = (
            select(t.step.c.id)
            .join(t.result, t.result.c.step_id == t.step.c.id)
            .where(t.step.c.key == key, t.step.c.kind != "rewind")
            .order_by(t.step.c.created)
            .limit(1)
        )
        rows = self._rows(query)
        return self.pair(rows[0]["id"]) if rows else None

    def tip(self, sandbox_id: str) -> Step | None:
        """Return the step whose state the sandbox's next step continues."""
        rows = self._rows(_TIP, sandbox=sandbox_id)
        if rows:
            return read_step(rows[0])
        parent = self.sandbox(sandbox_id).parent_step
        return self.pair(parent)[0] if parent else None

    def chain_since(
        self, step_id: str, known: Container[str], *, outputs: bool = True
    ) -> list[Pair]:
        """Return the end of a chain, back to (and without) the first known step."""
        found: list[Pair] = []
        at: str | None = step_id
        for count in chain(_PAGES, repeat(_PAGES[-1])):
            rows = self._rows(_CHAIN, step=at, count=count)
            if not rows:
                raise StepNotFoundError(str(at))
            for row in rows:
                if row["id"] in known:
                    return found[::-1]
                found.append(self._pair(row, outputs=outputs))
            at = rows[-1]["origin_id"]
            if at is None:
                break
        return found[::-1]

    def chain(self, step_id: str, *, outputs: bool = True) -> list[Pair]:
        """Return a whole chain by one query."""
        rows = self._rows(_CHAIN, step=step_id, count=1 << 30)
        if not rows:
            raise StepNotFoundError(step_id)
        return [self._pair(row, outputs=outputs) for row in reversed(rows)]

    def steps(self, sandbox_id: str, after: int, limit: int, *, outputs: bool = True) -> list[Pair]:
        """Return steps of a sandbox in their order."""
        rows = self._rows(_STEPS, sandbox=sandbox_id, after=after, count=limit)
        return [self._pair(row, outputs=outputs) for row in rows]

    def artifacts(self, sandbox_id: str | None, step_id: str | None) -> list[Artifact]:
        """Return artifacts in the order of their steps."""
        query = (
            select(t.artifact, t.step.c.seq, t.step.c.created)
            .join(t.step, t.step.c.id == t.artifact.c.step_id)
            .order_by(t.step.c.created, t.step.c.seq, t.artifact.c.role, t.artifact.c.number)
        )
        if sandbox_id is not None:
            query = query.where(t.artifact.c.sandbox_id == sandbox_id)
        if step_id is not None:
            query = query.where(t.artifact.c.step_id == step_id)
        return [_read_artifact(row) for row in self._rows(query)]

    def outputs(self, row: Row) -> list[dict[str, Any]]:
        """Return the outputs of a result's row, from the row or the blob store."""
        text = row["outputs"]
        if text is None:
            text = self._blobs.read(row["outputs_digest"])
        outputs: list[dict[str, Any]] = json.loads(text)
        return outputs

    def _pair(self, row: RowMapping, *, outputs: bool = True) -> Pair:
        if row[PREFIX + "step_id"] is None:
            return read_step(row), None
        columns = {column.name: row[PREFIX + column.name] for column in t.result.c}
        return read_step(row), read_result(columns, self.outputs(columns) if outputs else [])

    def _rows(self, query: Select[Any], **parameters: Any) -> list[RowMapping]:
        def work(connection: Connection, _repeated: bool) -> list[RowMapping]:
            return list(connection.execute(query, parameters).mappings())

        return self._database.run(work)


def _read_sandbox(row: RowMapping) -> SandboxRow:
    return SandboxRow(
        id=row["id"],
        owner=json.loads(row["owner"]),
        notebook=json.loads(row["notebook"]),
        created=datetime.fromisoformat(row["created"]),
        parent_step=row["parent_step"],
        steps=row["seq"],
        last_activity=datetime.fromisoformat(row["updated"]),
        state=row["state"],
    )


def _read_artifact(row: RowMapping) -> Artifact:
    return Artifact(
        sandbox_id=row["sandbox_id"],
        step_id=row["step_id"],
        seq=row["seq"],
        role=row["role"],
        path=json.loads(row["path"]),
        blob=row["blob"],
        size=row["size"],
        mime=json.loads(row["mime"]),
        mode=row["mode"],
        created=datetime.fromisoformat(row["created"]),
    )

"""Who did what when: one record for each sandbox, kernel start, step, end and purge, in the order of time."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, select

from ..errors import LogUnavailableError
from ..steps import digest_bytes
from . import tables as t
from .database import Database
from .rows import dump, stamp

Record = dict[str, Any]

_ROWS = 500
"""Rows fetched at a time: an audit of a long log must not be in memory as a whole."""

_WHO = (t.sandbox.c.owner, t.sandbox.c.notebook)


class Auditor:
    """Reads the log for `LogStore.audit`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def each(
        self,
        take: Callable[[Record], None],
        *,
        since: datetime | None,
        until: datetime | None,
        owner: str | None,
        sandbox_id: str | None,
    ) -> None:
        """Give each record to ``take``, the oldest first, out of one state of the log."""
        taken = 0

        def narrowed(query: Select[Any], when: Any) -> Select[Any]:
            if since is not None:
                query = query.where(when >= stamp(since))
            if until is not None:
                query = query.where(when < stamp(until))
            if owner is not None:
                query = query.where(t.sandbox.c.owner == dump(owner))
            if sandbox_id is not None:
                query = query.where(t.sandbox.c.id == sandbox_id)
            return query.order_by(when)

        queries = [
            (narrowed(query, when), record)
            for query, when, record in (
                (_SANDBOXES, t.sandbox.c.created, _created),
                (_SESSIONS, t.kernel_session.c.started, _started),
                (_STEPS, t.step.c.created, _step),
                (_EVENTS, t.event.c.created, _event),
            )
        ]

        def work(connection: Connection, repeated: bool) -> None:
            nonlocal taken
            if repeated and taken:
                # What was given cannot be taken back.
                raise LogUnavailableError("The connection was lost in the middle of an audit.")
            streams = [_records(connection, query, record) for query, record in queries]
            for item in heapq.merge(*streams, key=lambda record: record["time"]):
                taken += 1
                take(item)

        self._database.run(work)


def _records(
    connection: Connection, query: Select[Any], record: Callable[[RowMapping], Record]
) -> Iterator[Record]:
    rows = connection.execution_options(yield_per=_ROWS).execute(query).mappings()
    for row in rows:
        yield {
            "time": row["time"],
            "user": json.loads(row["owner"]),
            "sandbox": row["sandbox_id"],
            "notebook": json.loads(row["notebook"]),
            **record(row),
        }


_SANDBOXES = select(
    t.sandbox.c.created.label("time"),
    t.sandbox.c.id.label("sandbox_id"),
    t.sandbox.c.parent_step,
    *_WHO,
)
_SESSIONS = select(
    t.kernel_session.c.started.label("time"),
    t.kernel_session.c.sandbox_id,
    t.kernel_session.c.number,
    *_WHO,
).join(t.sandbox, t.sandbox.c.id == t.kernel_session.c.sandbox_id)
_STEPS = (
    select(
        t.step.c.created.label("time"),
        t.step.c.sandbox_id,
        *(t.step.c[name] for name in ("id", "seq", "kind", "language", "source", "payload")),
        *(t.step.c[name] for name in ("limits", "engine", "base_digest")),
        *(t.result.c[name] for name in ("status", "reason", "finished", "usage", "files")),
        *_WHO,
    )
    .join(t.sandbox, t.sandbox.c.id == t.step.c.sandbox_id)
    .outerjoin(t.result, t.result.c.step_id == t.step.c.id)
)
_EVENTS = select(
    t.event.c.created.label("time"),
    t.event.c.sandbox_id,
    t.event.c.kind,
    t.event.c.payload,
    *_WHO,
).join(t.sandbox, t.sandbox.c.id == t.event.c.sandbox_id)


def _created(row: RowMapping) -> Record:
    return {"event": "create", "forked_from": row["parent_step"]}


def _started(row: RowMapping) -> Record:
    return {"event": "start", "session": row["number"]}


def _event(row: RowMapping) -> Record:
    return {"event": row["kind"], **json.loads(row["payload"])}


def _step(row: RowMapping) -> Record:
    source, payload = json.loads(row["source"]), json.loads(row["payload"])
    record: Record = {"event": row["kind"], "step": row["seq"], "id": row["id"]}
    if row["kind"] == "upload":
        record["files"] = [
            {name: item[name] for name in ("path", "blob", "size")}
            for item in payload.get("files", ())
        ]
    elif row["kind"] == "rewind":
        record["to"] = payload.get("to")
    elif row["kind"] == "mount":
        record |= {"name": payload.get("name"), "digest": payload.get("digest")}
    else:
        record |= {
            "language": row["language"],
            "source": source,
            "source_digest": digest_bytes(source.encode("utf-8", "surrogatepass")),
            "secrets": payload.get("secrets", []),
            "limits": json.loads(row["limits"]),
        }
    record |= {"engine": row["engine"], "base": row["base_digest"], "status": row["status"]}
    if row["status"] is None:
        return record
    usage = json.loads(row["usage"])
    record |= {"reason": json.loads(row["reason"]), "finished": row["finished"]}
    if row["kind"] == "cell":
        record |= {
            "cpu_seconds": usage.get("cpu_seconds"),
            "hosts": usage.get("hosts", {}),
            "files": [
                {name: item[name] for name in ("path", "kind", "blob", "size")}
                for item in json.loads(row["files"])
            ],
        }
    return record

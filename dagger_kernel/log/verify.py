"""Checks the log: every row's hash, the chain of hashes, files against results, blobs.

Rows are read in pages and never change, so that a log in use can be checked without stopping anybody.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, func, select, text

from ..errors import BlobError, DaggerKernelError, LogIntegrityError
from ..steps import Kind, digest_bytes
from . import tables as t
from .artifacts import exports, uploads
from .blobs import BlobStore
from .database import Database
from .rows import GENESIS, row_hash

_PAGE = 200
_FILE = ("role", "number", "path", "blob", "mime", "mode")
_CHAINED = (t.step, t.result, t.event)


class Verifier:
    """Answers `LogStore.verify`. One object is one check."""

    def __init__(self, database: Database, blobs: BlobStore, *, read_blobs: bool) -> None:
        self._database, self._blobs, self._read_blobs = database, blobs, read_blobs
        self._seen_blobs: set[str] = set()

    def problems(self, sandbox_id: str | None) -> Iterator[str]:
        """Yield what is wrong, one sentence each."""
        try:
            if sandbox_id is None:
                yield from self._file()
            for identity in [sandbox_id] if sandbox_id else self._sandboxes():
                for problem in self._sandbox(identity):
                    yield f"Sandbox {identity}: {problem}."
        except LogIntegrityError as error:
            yield error.what

    def _file(self) -> Iterator[str]:
        """Let SQLite check its file (PostgreSQL's is its administrator's: pg_amcheck)."""
        if not self._database.is_sqlite:
            return

        def work(connection: Connection, _repeated: bool) -> list[str]:
            return list(connection.scalars(text("PRAGMA integrity_check(20)")))

        for line in self._database.run(work):
            if line != "ok":
                yield f"The database file is damaged: {line}."

    def _sandboxes(self) -> list[str]:
        def work(connection: Connection, _repeated: bool) -> list[str]:
            query = select(t.sandbox.c.id).order_by(t.sandbox.c.created, t.sandbox.c.id)
            return list(connection.scalars(query))

        return self._database.run(work)

    def _sandbox(self, identity: str) -> Iterator[str]:
        row = self._one(t.sandbox, identity)
        head = self._one(t.head, identity)
        if row is None or head is None:
            yield "its first row is missing"
            return
        if row_hash("sandbox", {**row, "previous": GENESIS}) != row["hash"]:
            yield "its first row was altered"
        if head["state"] == "purged":
            yield from self._purged(identity, head)
            return
        entry, seq, last = 0, 0, row["hash"]
        while entry < head["entry"]:
            page = self._page(identity, entry)
            artifacts = self._artifacts(page)
            for table, item in page:
                entry += 1
                if item["entry"] != entry:
                    yield f"{item['entry'] - entry} rows before entry {item['entry']} are missing"
                    entry = item["entry"]
                elif item["previous"] != last:
                    yield f"entry {entry} does not continue the entry before it"
                name = f"{table.name} at entry {entry}"
                if row_hash(table.name, item) != item["hash"]:
                    yield f"the {name} was altered"
                last = item["hash"]
                if table is t.step:
                    seq += 1
                    if item["seq"] != seq:
                        yield f"step {item['seq']} stands where step {seq} belongs"
                        seq = item["seq"]
                for problem in self._content(table, item, artifacts):
                    yield f"the {name} {problem}"
            if not page:
                yield f"the last {head['entry'] - entry} rows are missing"
                return
            if entry >= head["entry"]:
                # Appended meanwhile? A row and the head's move are one transaction.
                head = self._one(t.head, identity) or head
        yield from self._end(identity)

    def _end(self, identity: str) -> Iterator[str]:
        """Compare the head with the newest row, in one snapshot."""
        newest = [
            select(func.max(table.c.entry))
            .where(table.c.sandbox_id == identity)
            .scalar_subquery()
            .label(table.name)
            for table in _CHAINED
        ]
        hashes = [
            select(table.c.hash)
            .where(table.c.sandbox_id == identity, table.c.entry == t.head.c.entry)
            .scalar_subquery()
            .label(f"{table.name}_hash")
            for table in _CHAINED
        ]
        query = select(t.head, *newest, *hashes).where(t.head.c.sandbox_id == identity)
        row = self._first(query)
        assert row is not None
        if max(row[table.name] or 0 for table in _CHAINED) != row["entry"]:
            yield "there are rows after its head"
        elif row["entry"] and row["hash"] not in [row[f"{table.name}_hash"] for table in _CHAINED]:
            yield "its head does not name its newest row"

    def _purged(self, identity: str, head: RowMapping) -> Iterator[str]:
        """Check what a purge leaves: the events, the last of which is its tombstone."""
        found = self._page(identity, 0)
        if any(table is not t.event for table, _ in found):
            yield "it was purged, but rows are left"
        events = [item for table, item in found if table is t.event]
        for item in events:
            if row_hash("event", item) != item["hash"]:
                yield f"the event at entry {item['entry']} was altered"
        if not events or events[-1]["kind"] != "purge" or events[-1]["hash"] != head["hash"]:
            yield "its tombstone is missing"

    def _content(
        self, table: Table, item: RowMapping, artifacts: dict[tuple[str, str], list[RowMapping]]
    ) -> Iterator[str]:
        """Check what a row refers to."""
        if table is t.step:
            expected = uploads(item["kind"], json.loads(item["payload"]))
            role = "mount" if item["kind"] == Kind.MOUNT else "upload"
            found = artifacts.get((item["id"], role), [])
            yield from self._files(expected, found)
        elif table is t.result:
            expected = exports(json.loads(item["files"]))
            found = artifacts.get((item["step_id"], "export"), [])
            yield from self._files(expected, found)
            if item["outputs"] is None:
                yield from self._blob(item["outputs_digest"], "outputs")
            elif digest_bytes(item["outputs"].encode()) != item["outputs_digest"]:
                yield "has altered outputs"
            if item["layer"] is not None:
                yield from self._blob(item["layer"], "layer")

    def _files(self, expected: list[dict[str, Any]], found: list[RowMapping]) -> Iterator[str]:
        if [{name: row[name] for name in _FILE} for row in found] != expected:
            yield "has altered artifacts"
        for item in expected:
            yield from self._blob(item["blob"], f"file {json.loads(item['path'])!r}")

    def _artifacts(
        self, page: list[tuple[Table, RowMapping]]
    ) -> dict[tuple[str, str], list[RowMapping]]:
        """Return the artifacts of a page's steps and results, by step and role, in order."""
        ids = {
            item["id"] if table is t.step else item["step_id"]
            for table, item in page
            if table is not t.event
        }
        query = (
            select(t.artifact).where(t.artifact.c.step_id.in_(ids)).order_by(t.artifact.c.number)
        )
        found: dict[tuple[str, str], list[RowMapping]] = {}

        def work(connection: Connection, _repeated: bool) -> list[RowMapping]:
            return list(connection.execute(query).mappings())

        for row in self._database.run(work):
            found.setdefault((row["step_id"], row["role"]), []).append(row)
        return found

    def _blob(self, digest: str, what: str) -> Iterator[str]:
        if digest in self._seen_blobs:
            return
        self._seen_blobs.add(digest)
        try:
            if self._read_blobs:
                self._blobs.open(digest).close()
            else:
                self._blobs.size(digest)
        except BlobError as error:
            yield f"has a problem with its {what}: {error.what}"
        except DaggerKernelError as error:
            yield f"has a {what} that could not be checked: {error.what}"

    def _page(self, identity: str, after: int) -> list[tuple[Table, RowMapping]]:
        """Return the rows of the next entries, of all tables, in order."""

        def work(connection: Connection, _repeated: bool) -> list[tuple[Table, RowMapping]]:
            found: list[tuple[Table, RowMapping]] = []
            for table in _CHAINED:
                query = (
                    select(table)
                    .where(table.c.sandbox_id == identity, table.c.entry > after)
                    .order_by(table.c.entry)
                    .limit(_PAGE)
                )
                found += [(table, row) for row in connection.execute(query).mappings()]
            # Another table may have more rows within the range: only the first page's worth is whole.
            return sorted(found, key=lambda pair: pair[1]["entry"])[:_PAGE]

        return self._database.run(work)

    def _one(self, table: Table, identity: str) -> RowMapping | None:
        column = table.c.id if table is t.sandbox else table.c.sandbox_id
        return self._first(select(table).where(column == identity))

    def _first(self, query: Any) -> RowMapping | None:
        def work(connection: Connection, _repeated: bool) -> RowMapping | None:
            return connection.execute(query).mappings().first()

        return self._database.run(work)

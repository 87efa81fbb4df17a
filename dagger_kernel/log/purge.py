"""The only deletions: a sandbox the administrator purges, and blobs nothing refers to."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, or_, select, text

from ..errors import LogError
from . import tables as t
from .blobs import BlobStore
from .database import Database
from .heads import add_event

GRACE_SECONDS = 3600.0
"""A blob younger than this may belong to a result that is about to be appended."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection removed: number of blobs, and their bytes."""

    blobs: int
    size: int


class Purger:
    """Deletes. `dagger_kernel.log.LogStore` documents the methods for callers."""

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self._database, self._blobs = database, blobs

    def purge(self, sandbox_id: str, by: str) -> None:
        """Delete a sandbox's steps, results and artifacts; a tombstone stays in its chain."""

        def work(connection: Connection, _repeated: bool) -> set[str]:
            if connection.dialect.name == "sqlite":
                connection.execute(text("PRAGMA secure_delete=ON"))
            if (
                connection.scalar(select(t.head.c.state).where(t.head.c.sandbox_id == sandbox_id))
                == "purged"
            ):
                return set()
            mine = select(t.step.c.id).where(t.step.c.sandbox_id == sandbox_id)
            self._refuse_forks(connection, sandbox_id, mine)
            blobs = set(connection.scalars(_referenced(sandbox_id)))
            note = {
                "by": by,
                "steps": connection.scalar(select(func.count()).select_from(mine.subquery())),
            }
            # The tombstone first: the triggers let rows go only where one stands.
            add_event(connection, sandbox_id, "purge", note, state="purged")
            for table in (t.artifact, t.result, t.step):
                connection.execute(delete(table).where(table.c.sandbox_id == sandbox_id))
            return blobs

        blobs = self._database.run(work, write=True)
        if self._database.is_sqlite:
            # Else the deleted text would stay in the write-ahead log until somebody overwrites it.
            with self._database.engine.connect() as connection:
                connection.execution_options(isolation_level="AUTOCOMMIT")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        for digest in blobs - self._still_referenced(blobs):
            self._blobs.delete(digest)
            self._forget(digest)

    def collect(self, older_than: float, keep: Collection[str]) -> Collected:
        """Delete blobs that nothing refers to and that are older than so many seconds."""
        before = time.time() - older_than
        count = size = 0

        def work(connection: Connection, _repeated: bool) -> set[str]:
            # A base's digest is that of its recipe, which builds it again for the chains on it.
            bases = select(t.step.c.base_digest).distinct()
            return {*connection.scalars(_referenced(None)), *connection.scalars(bases)}

        # Listed first, asked for references after: what was stored since is not in the list.
        old = [digest for digest, stored in self._blobs.digests() if stored < before]
        referenced = self._database.run(work) | set(keep)
        for digest in old:
            if digest not in referenced:
                freed = self._blobs.delete_older(digest, before)
                count, size = count + (freed is not None), size + (freed or 0)
                self._forget(digest)
        self._blobs.sweep(before)
        return Collected(count, size)

    @staticmethod
    def _refuse_forks(connection: Connection, sandbox_id: str, mine: Any) -> None:
        forks = (
            select(t.sandbox.c.id)
            .join(t.head)
            .where(
                t.sandbox.c.id != sandbox_id,
                t.head.c.state != "purged",
                or_(
                    t.sandbox.c.parent_step.in_(mine),
                    t.sandbox.c.id.in_(
                        select(t.step.c.sandbox_id).where(
                            or_(t.step.c.parent_id.in_(mine), t.step.c.origin_id.in_(mine)),
                            t.step.c.sandbox_id != sandbox_id,
                        )
                    ),
                ),
            )
        )
        others = sorted(connection.scalars(forks))
        if others:
            raise LogError(
                f"The sandbox {sandbox_id} cannot be purged: {', '.join(others)} continue from it.",
                remedy="Purge those first.",
            )

    def _still_referenced(self, blobs: set[str]) -> set[str]:
        def work(connection: Connection, _repeated: bool) -> set[str]:
            return {
                digest
                for digest in blobs
                if connection.scalar(_referenced(None, digest).limit(1)) is not None
            }

        return self._database.run(work)

    def _forget(self, digest: str) -> None:
        """Delete the row of a blob, unless something refers to it again."""

        def work(connection: Connection, _repeated: bool) -> None:
            used = select(t.artifact.c.blob).where(t.artifact.c.blob == digest).exists()
            connection.execute(delete(t.blob).where(t.blob.c.digest == digest, ~used))

        self._database.run(work, write=True)


def _referenced(sandbox_id: str | None, digest: str | None = None) -> Any:
    """Return the query of the blobs that rows refer to (of a sandbox; one digest)."""
    queries = []
    for table, column, wanted in (
        (t.artifact, t.artifact.c.blob, None),
        (t.result, t.result.c.layer, t.result.c.layer.is_not(None)),
        (t.result, t.result.c.outputs_digest, t.result.c.outputs.is_(None)),
    ):
        conditions: list[ColumnElement[bool]] = [] if wanted is None else [wanted]
        if sandbox_id is not None:
            conditions.append(table.c.sandbox_id == sandbox_id)
        if digest is not None:
            conditions.append(column == digest)
        queries.append(select(column.label("digest")).where(*conditions))
    first, *others = queries
    return first.union(*others)

"""The log's schema version: checked on every opening, migrated when older.

Alembic is imported only when there is something to migrate: opening an up-to-date log is one query.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from ..errors import LogUnavailableError, LogVersionError
from .database import BUSY_SECONDS, Database
from .faults import translated
from .tables import SCHEMA_VERSION

_ADVISORY_KEY = int.from_bytes(hashlib.sha256(b"dagger_kernel migration").digest()[:8], signed=True)


def ensure(database: Database, *, create: bool = True) -> None:
    """Bring a database to this version's schema.

    Parameters
    ----------
    database
        Which one.
    create
        Whether to make the schema where there is none, and to migrate an older one.

    Raises
    ------
    LogUnavailableError
        No connection, no permission, or there is no log and ``create`` is false.
    LogVersionError
        A newer version wrote the log (or an older one, and ``create`` is false).
    StorageFullError
        No space for the schema.
    """
    if database.path is not None:
        if create:
            database.make_file()
        elif not database.path.exists():
            raise LogUnavailableError(f"There is no log at {database.path}.")
    found = version(database)
    if found == SCHEMA_VERSION:
        return
    if not create:
        if not found:
            raise LogUnavailableError("There is no log in this database.")
        raise LogVersionError(found, SCHEMA_VERSION)
    with _only_one(database):
        upgrade(database)


def version(database: Database) -> str:
    """Return the schema version of a database; empty: it has none."""

    def work(connection: Connection, _repeated: bool) -> str:
        # Asking the catalogue first: on PostgreSQL a failed query would end the transaction.
        if not inspect(connection).has_table("alembic_version"):
            return ""
        return str(connection.scalar(text("SELECT version_num FROM alembic_version")) or "")

    return database.run(work)


def upgrade(database: Database, target: str = "head") -> None:
    """Migrate up to a version.

    Raises
    ------
    LogVersionError
        The database has a version that this package does not know.
    """
    _migrate(database, "upgrade", target)


def downgrade(database: Database, target: str) -> None:
    """Migrate down to a version; ``base`` drops every table and all that was logged."""
    _migrate(database, "downgrade", target)


def _migrate(database: Database, direction: str, target: str) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory
    from alembic.script.revision import ResolutionError
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)

    def steps(current: Any, _context: Any) -> Any:
        if direction == "upgrade":
            return script._upgrade_revs(target, current)
        return script._downgrade_revs(target, current)

    def work(connection: Connection, _repeated: bool) -> None:
        with EnvironmentContext(
            config, script, fn=steps, destination_rev=target, as_sql=False
        ) as environment:
            environment.configure(
                connection=connection,
                transaction_per_migration=False,
                # SQLite's and PostgreSQL's DDL is transactional: all migrations or none.
                transactional_ddl=True,
            )
            environment.run_migrations()

    try:
        database.run(work, write=True)
    except (CommandError, ResolutionError):
        raise LogVersionError(version(database), SCHEMA_VERSION) from None


@contextmanager
def _only_one(database: Database) -> Iterator[None]:
    """Let one process migrate at a time; the others then find nothing to do."""
    if database.path is not None:
        lock = FileLock(f"{database.path}.migrate.lock", timeout=BUSY_SECONDS, mode=0o600)
        try:
            with translated(), lock:
                yield
        except Timeout:
            raise LogUnavailableError(
                "Another process migrates the log; it takes too long."
            ) from None
        return
    with translated(), database.engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _ADVISORY_KEY})
        connection.commit()
        try:
            yield
        finally:
            try:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _ADVISORY_KEY})
                connection.commit()
            except SQLAlchemyError:
                connection.invalidate()  # closing the session frees the lock

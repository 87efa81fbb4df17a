"""Translates what databases and file systems raise into the package's errors."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ..errors import LogError, LogIntegrityError, LogUnavailableError, StorageFullError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

# PostgreSQL's SQLSTATE classes and codes.
_PG_FULL = ("53100", "53000")
_PG_GONE = ("08", "57P01", "57P02", "57P03", "57P05", "25006")
_PG_AGAIN = ("40001", "40P01")
_PG_DAMAGED = ("XX001", "XX002")


def is_lost(error: BaseException) -> bool:
    """Whether a PostgreSQL connection was lost, or a transaction must be repeated.

    Then the outcome of a COMMIT is unknown; the caller repeats only what can be repeated.
    """
    if not isinstance(error, DBAPIError) or isinstance(error.orig, sqlite3.Error):
        return False
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        return error.connection_invalidated or isinstance(
            error.orig, driver_errors("OperationalError")
        )
    return bool(state.startswith(_PG_GONE + _PG_AGAIN))


def driver_errors(name: str = "Error") -> tuple[type[BaseException], ...]:
    """Return the PostgreSQL driver's error class; none when it is not installed."""
    try:
        import psycopg
    except ImportError:  # then no such error can come
        return ()
    return (getattr(psycopg, name),)


def translate(error: Exception) -> Exception:
    """Return the package's error for an error of the database or the file system."""
    if isinstance(error, OSError):
        return from_os_error(error)
    if isinstance(error, PoolTimeout):
        return LogUnavailableError("All connections to the log's database are in use.")
    if not isinstance(error, DBAPIError):
        return LogError(f"The log's database refused: {error}.")
    detail = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else "no reason"
    if isinstance(error.orig, sqlite3.Error):
        return _from_sqlite(error.orig, detail)
    state = getattr(error.orig, "sqlstate", None) or ""
    if state in _PG_FULL:
        return StorageFullError("The log's database has no space left.")
    if state in _PG_DAMAGED:
        return LogIntegrityError(f"The log's database is damaged: {detail}.")
    if is_lost(error) or isinstance(error, InterfaceError):
        return LogUnavailableError(f"The log's database does not answer: {detail}.")
    if state.startswith(("28", "3D", "42501", "53", "55P03")):
        return LogUnavailableError(f"The log's database refused: {detail}.")
    return LogError(f"The log's database refused: {detail}.")


def from_os_error(error: OSError) -> Exception:
    """Return the package's error for an `OSError` of the log's or the blobs' directory."""
    if error.errno in FULL:
        return StorageFullError("No space is left for the log and its blobs.")
    where = f" {error.filename}" if error.filename else ""
    return LogUnavailableError(f"The log's storage{where} cannot be used: {error.strerror}.")


def _from_sqlite(error: sqlite3.Error, detail: str) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0)
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StorageFullError("No space is left for the log.")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return LogIntegrityError(f"The log's database file is damaged: {detail}.")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LogUnavailableError("Another process keeps the log's database locked.")
        case sqlite3.SQLITE_CONSTRAINT:
            return LogError(f"The log refused: {detail}.")
        case sqlite3.SQLITE_IOERR if code in (
            sqlite3.SQLITE_IOERR_WRITE,
            sqlite3.SQLITE_IOERR_TRUNCATE,
            sqlite3.SQLITE_IOERR_FSYNC,
            sqlite3.SQLITE_IOERR_SHMSIZE,
        ):
            # A quota or a file size limit looks like this; a broken disk does too.
            return StorageFullError(
                "The log could not be written; the disk or a quota may be full."
            )
        case (
            sqlite3.SQLITE_READONLY
            | sqlite3.SQLITE_CANTOPEN
            | sqlite3.SQLITE_PERM
            | sqlite3.SQLITE_AUTH
            | sqlite3.SQLITE_IOERR
        ):
            return LogUnavailableError(f"The log's database cannot be used: {detail}.")
    return LogError(f"The log's database refused: {detail}.")


@contextmanager
def translated() -> Iterator[None]:
    """Raise the package's errors instead of the database's and the file system's."""
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        raise translate(error) from error

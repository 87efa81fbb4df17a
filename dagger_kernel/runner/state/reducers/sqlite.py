"""SQLite connections: opened again with their options, where nothing of them is lost that way."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..lost import LostObject
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler


@reduces("sqlite3.Connection")
def reduce_sqlite(pickler: StatePickler, value: Any) -> Any:
    """Save a connection to a database file as its path, to one in memory as its content."""
    try:
        rows = _rows(value, "PRAGMA database_list")
    except Exception as error:
        if "closed" in str(error):
            return (
                rebuild_sqlite,
                (type(value), "", None, {}, pickler.name, pickler.registry.cell),
            )
        raise
    attached = [(row[1], row[2]) for row in rows if row[1] not in ("main", "temp")]
    path = next((row[2] for row in rows if row[1] == "main"), "")
    if any(row[1] == "temp" for row in rows) and _rows(value, "SELECT 1 FROM temp.sqlite_master"):
        raise CannotPersistError("it holds temporary tables, which end with it")
    if path and value.in_transaction:
        raise CannotPersistError(
            "it has changes which were not committed, and they are rolled back; commit in the same cell"
        )
    if any(not file for _, file in attached):
        raise CannotPersistError("a database in memory is attached to it")
    extensions = _extensions(value) - _usual_extensions()
    by_sqlalchemy = (
        extensions & {"regexp"} if "sqlalchemy.dialects.sqlite" in sys.modules else set()
    )
    if made := sorted(extensions - by_sqlalchemy):
        raise CannotPersistError(
            f"SQLite does not give back the functions and collations made for it ({', '.join(made)});"
            " open the connection and make them in the cell that uses them"
        )
    content = None if path else (value.serialize() if _has_pages(value) else b"")
    options = {
        "isolation_level": value.isolation_level,
        "attached": attached,
        "pragmas": _settings(value),
        "regexp": bool(by_sqlalchemy),
    }
    if hasattr(value, "autocommit"):
        options["autocommit"] = value.autocommit
    state = (value.row_factory, value.text_factory)
    arguments = (type(value), path, content, options, pickler.name, pickler.registry.cell)
    return (rebuild_sqlite, arguments, state, None, None, restore_sqlite)


_PRAGMAS = (
    "foreign_keys", "recursive_triggers", "synchronous", "cache_size", "temp_store",
    "query_only", "ignore_check_constraints", "read_uncommitted", "secure_delete", "locking_mode",
    "trusted_schema", "legacy_alter_table", "automatic_index", "cell_size_check", "cache_spill",
    "reverse_unordered_selects", "mmap_size", "wal_autocheckpoint", "threads", "analysis_limit",
)  # fmt: skip
"""Options of a connection which it tells; those of the database are in its file."""


def _rows(connection: Any, query: str) -> list[Any]:
    """Ask for plain rows, whatever the user wants rows to be."""
    cursor = connection.cursor()
    cursor.row_factory = None
    found: list[Any] = cursor.execute(query).fetchall()
    return found


def _pragma(connection: Any, name: str) -> Any:
    """What an option is; None where this SQLite does not know it."""
    rows = _rows(connection, f"PRAGMA {name}")
    return rows[0][0] if rows else None


def _settings(connection: Any) -> dict[str, Any]:
    """What the options of a connection are."""
    found: dict[str, Any] = {"busy_timeout": _pragma(connection, "busy_timeout")}
    # Some are told only after a look into the file, which another connection may have locked.
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        for name in _PRAGMAS:
            with contextlib.suppress(Exception):
                found[name] = _pragma(connection, name)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {found['busy_timeout']}")
    return found


def _regexp(pattern: str, text: str | None) -> bool | None:
    """Do what SQLAlchemy makes for each of its connections."""
    return None if text is None else re.search(pattern, text) is not None


def _set(connection: Any, settings: dict[str, Any]) -> None:
    """Set the options of a new connection."""
    now = _settings(connection)
    for name, setting in settings.items():
        if setting is not None and now.get(name, setting) != setting:
            connection.execute(f"PRAGMA {name} = {setting}")


def _extensions(connection: Any) -> set[str]:
    """Names of the functions and collations of a connection."""
    found = {str(row[0]) for row in _rows(connection, "PRAGMA function_list")}
    return found | {str(row[1]) for row in _rows(connection, "PRAGMA collation_list")}


@functools.cache
def _usual_extensions() -> frozenset[str]:
    """Those which every connection has."""
    import sqlite3

    connection = sqlite3.connect(":memory:")
    try:
        return frozenset(_extensions(connection))
    finally:
        connection.close()


def _has_pages(value: Any) -> bool:
    return bool(_pragma(value, "page_count"))


@rebuilder
def rebuild_sqlite(
    cls: Any, path: str, content: bytes | None, options: dict[str, Any], variable: str, cell: int
) -> Any:
    """Connect again."""
    import sqlite3

    if path and not os.path.exists(path):
        return LostObject(variable, "sqlite3.Connection", "its database file was removed", cell)
    connection = cls(path or ":memory:")
    if not path and content is None:
        connection.close()
        return connection
    if content:
        # Not straight into the connection: it would then look like one to a file.
        source = sqlite3.connect(":memory:")
        source.deserialize(content)
        source.backup(connection)
        source.close()
    for name, file in options["attached"]:
        connection.execute(f'ATTACH DATABASE ? AS "{name}"', (file,))
    _set(connection, options.get("pragmas", {}))
    if options.get("regexp"):
        connection.create_function("regexp", 2, _regexp, deterministic=True)
    connection.isolation_level = options["isolation_level"]
    if "autocommit" in options:
        connection.autocommit = options["autocommit"]
    return connection


@rebuilder
def restore_sqlite(connection: Any, state: tuple[Any, Any]) -> None:
    """Set a connection's factories."""
    if type(connection) is not LostObject:
        connection.row_factory, connection.text_factory = state


@reduces("sqlite3.Cursor")
def reduce_cursor(_pickler: StatePickler, value: Any) -> Any:
    """Save a cursor with the rows it has not given yet."""
    connection = value.connection
    try:
        position = value.fetchall() if value.description is not None else []
    except Exception as error:
        raise CannotPersistError(f"its rows cannot be read: {error}") from None
    if position:
        raise CannotPersistError(
            "a cursor with unread rows cannot be saved; fetch them in the cell"
        )
    return (rebuild_cursor, (type(value), connection))


@rebuilder
def rebuild_cursor(cls: Any, connection: Any) -> Any:
    """Make a cursor which has given all its rows."""
    return connection if type(connection) is LostObject else connection.cursor(cls)


@reduces("sqlite3.Row")
def reduce_row(_pickler: StatePickler, value: Any) -> Any:
    """Save a row."""
    return (rebuild_row, (tuple(value.keys()), tuple(value)))


@rebuilder
def rebuild_row(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Make a row."""
    import sqlite3

    with sqlite3.connect(":memory:") as connection:
        cursor = connection.cursor()
        columns = ", ".join('? AS "' + name.replace('"', '""') + '"' for name in names)
        cursor.row_factory = sqlite3.Row
        row = cursor.execute(f"SELECT {columns}", values).fetchone()
    connection.close()
    return row

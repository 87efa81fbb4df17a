"""Database connections: opened again where nothing of them is lost that way."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import CannotPersistError
from ..lost import LostObject
from ..pickler import UNSAVEABLE, reduces
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler

UNSAVEABLE.update(
    {
        "sqlite3.Blob": "it belongs to a transaction which has ended",
        "psycopg.Connection": "a network connection ends with its process",
        "psycopg2.extensions.connection": "a network connection ends with its process",
        "pymysql.connections.Connection": "a network connection ends with its process",
        "sqlalchemy.orm.session.Session": "a database session ends with its process",
        "sqlalchemy.engine.base.Connection": "a database connection ends with its process",
        "duckdb.duckdb.DuckDBPyRelation": "a relation belongs to its connection; keep its result",
        "duckdb._relation.DuckDBPyRelation": "a relation belongs to its connection; keep its result",
        "_duckdb.DuckDBPyRelation": "a relation belongs to its connection; keep its result",
    }
)


@reduces("sqlite3.Connection")
def reduce_sqlite(pickler: StatePickler, value: Any) -> Any:
    """Save a connection to a database file as its path, to one in memory as its content."""
    try:
        rows = value.cursor().execute("PRAGMA database_list").fetchall()
    except Exception as error:
        if "closed" in str(error):
            return (
                rebuild_sqlite,
                (type(value), "", None, {}, pickler.name, pickler.registry.cell),
            )
        raise
    attached = [(row[1], row[2]) for row in rows if row[1] not in ("main", "temp")]
    path = next((row[2] for row in rows if row[1] == "main"), "")
    if any(row[1] == "temp" for row in rows) and value.execute(
        "select count(*) from temp.sqlite_master"
    ).fetchone() != (0,):
        raise CannotPersistError("it holds temporary tables, which end with it")
    if path and value.in_transaction:
        raise CannotPersistError(
            "it has changes which were not committed, and they are rolled back; commit in the same cell"
        )
    if any(not file for _, file in attached):
        raise CannotPersistError("a database in memory is attached to it")
    content = None if path else (value.serialize() if _has_pages(value) else b"")
    options = {"isolation_level": value.isolation_level, "attached": attached}
    if hasattr(value, "autocommit"):
        options["autocommit"] = value.autocommit
    state = (value.row_factory, value.text_factory)
    arguments = (type(value), path, content, options, pickler.name, pickler.registry.cell)
    return (rebuild_sqlite, arguments, state, None, None, restore_sqlite)


def _has_pages(value: Any) -> bool:
    found: int = value.cursor().execute("PRAGMA page_count").fetchone()[0]
    return found > 0


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


@reduces(
    "duckdb.duckdb.DuckDBPyConnection", "duckdb.DuckDBPyConnection", "_duckdb.DuckDBPyConnection"
)
def reduce_duckdb(pickler: StatePickler, value: Any) -> Any:
    """Save a connection to a database file as its path."""
    import sys

    default = getattr(sys.modules.get("duckdb"), "default_connection", None)
    if callable(default):
        default = default()
    if default is value:
        pickler.modules.add("duckdb")
        return (rebuild_default_duckdb, ())
    cursor = value.cursor()
    rows = cursor.execute(
        "select database_name, path, readonly from duckdb_databases() where not internal"
    ).fetchall()
    paths = [path for _, path, _ in rows]
    if len(rows) != 1 or not paths[0]:
        raise CannotPersistError(
            "a DuckDB database in memory ends with its process; use a file, or export the tables"
        )
    value.execute("CHECKPOINT")
    return (
        rebuild_duckdb,
        (os.path.abspath(paths[0]), bool(rows[0][2]), pickler.name, pickler.registry.cell),
    )


@rebuilder
def rebuild_default_duckdb() -> Any:
    """Give DuckDB's default connection."""
    import duckdb

    found = duckdb.default_connection
    return found() if callable(found) else found


@rebuilder
def rebuild_duckdb(path: str, read_only: bool, variable: str, cell: int) -> Any:
    """Connect again."""
    import duckdb

    if not os.path.exists(path):
        return LostObject(
            variable, "duckdb.DuckDBPyConnection", "its database file was removed", cell
        )
    return duckdb.connect(path, read_only=read_only)

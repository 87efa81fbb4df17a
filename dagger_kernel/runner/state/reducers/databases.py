"""Database connections: opened again where nothing of them is lost that way."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..dispatch import UNSAVEABLE, reduces
from ..errors import CannotPersistError
from ..lost import LostObject
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

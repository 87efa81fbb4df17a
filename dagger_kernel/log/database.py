"""One database: connections with the right modes, transactions, reconnects."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from ..errors import LogUnavailableError, SettingError
from ..settings import Settings
from .faults import from_os_error, is_lost, translate
from .flusher import Flusher
from .private import make_private_directory

BUSY_SECONDS = 30.0
"""How long a write waits for other writers."""

RECONNECT_SECONDS = 20.0
"""How long work is repeated while PostgreSQL restarts or fails over."""

_PRAGMAS = (
    "journal_mode=WAL",
    "foreign_keys=ON",
    # Damaged pages are refused instead of answered with garbage; a schema's own SQL is not trusted.
    "cell_size_check=ON",
    "trusted_schema=OFF",
    # KiB. The end of a log is all that is read again and again; the rest is in the system's cache, once for all kernels.
    "cache_size=-512",
)

T = TypeVar("T")


class Database:
    """The engine of one log.

    Parameters
    ----------
    url
        ``sqlite+pysqlite`` with a file, or ``postgresql+psycopg``.
    reconnect_seconds
        How long to repeat work on a lost PostgreSQL connection.

    Notes
    -----
    SQLite runs in WAL mode: no commit is lost when a process is killed. What a power cut may take depends
    on ``synchronous``: FULL waits for the disk at each commit, NORMAL does not. Commits are FULL except
    where ``durable=False`` asks for NORMAL with the disk to follow within milliseconds (`Flusher`): the two
    commits of a cell, which the user waits for. Measured side by side on the development machine, ms:
    a result's commit 0.4 NORMAL, 0.7 FULL on an idle disk, 3 to 5 FULL on a busy one.
    PostgreSQL's commits are all synchronised: a server may fail over while the client lives on.
    """

    def __init__(self, url: URL, *, reconnect_seconds: float = RECONNECT_SECONDS) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.path = Path(url.database or "") if self.is_sqlite else None
        self._flusher = Flusher(self.path) if self.path is not None else None
        self._reconnect_seconds = reconnect_seconds
        self._connected = False
        self.engine: Engine = _sqlite_engine(url) if self.is_sqlite else _postgresql_engine(url)
        self._writer = self.engine.execution_options(dagger_kernel_write="FULL")
        self._quick_writer = self.engine.execution_options(dagger_kernel_write="NORMAL")

    @classmethod
    def from_settings(cls, settings: Settings) -> Database:
        """Return the database the settings name; nothing is opened yet.

        Raises
        ------
        SettingError
            The URL is not one of SQLite or PostgreSQL.
        LogUnavailableError
            The PostgreSQL driver is not installed.
        """
        located = cls.locate(settings)
        if isinstance(located, Path):
            return cls(URL.create("sqlite+pysqlite", database=str(located)))
        try:
            return cls(located)
        except (ImportError, NoSuchModuleError):
            raise LogUnavailableError(
                "The driver for PostgreSQL is not installed.",
                remedy="Install it: pip install 'dagger-kernel[postgresql]'.",
            ) from None

    @staticmethod
    def locate(settings: Settings) -> Path | URL:
        """Return SQLite's file or PostgreSQL's URL.

        Raises
        ------
        SettingError
            The URL is not one of SQLite or PostgreSQL.
        """
        if not settings.database_url:
            return settings.data_path / "log.sqlite"
        expected = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
        try:
            url = make_url(settings.database_url)
        except ArgumentError:
            raise SettingError("database_url", "(not shown)", expected) from None
        backend = url.drivername.partition("+")[0]
        if backend == "sqlite" and url.database not in (None, "", ":memory:"):
            return Path(str(url.database)).expanduser()
        if backend in ("postgresql", "postgres"):
            return url.set(drivername="postgresql+psycopg")
        raise SettingError("database_url", url.render_as_string(), expected)

    def make_file(self) -> None:
        """Make SQLite's file, 0600 in a directory 0700, unless it is there.

        Raises
        ------
        LogUnavailableError, StorageFullError
            The directory cannot be written.
        """
        assert self.path is not None
        try:
            make_private_directory(self.path.parent)
            # SQLite gives its -wal and -shm files the mode of the database file.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise from_os_error(error) from error

    def run(
        self, work: Callable[[Connection, bool], T], *, write: bool = False, durable: bool = True
    ) -> T:
        """Do work in one transaction and return what it returns.

        Parameters
        ----------
        work
            Takes the connection and whether an earlier attempt may have been committed: a
            PostgreSQL connection lost at COMMIT leaves that open.
        write
            Whether it writes (SQLite then takes the write lock at once, so that reading and writing in
            one transaction cannot meet another writer in between).
        durable
            Whether to wait until the commit would survive a power cut (see the class).

        Raises
        ------
        LogError, StorageFullError
            As `dagger_kernel.log.faults` translates them.
        """
        engine = self.engine
        if write:
            engine = self._writer if durable else self._quick_writer
        deadline, repeated, pause = 0.0, False, 0.02
        while True:
            try:
                with engine.begin() as connection:
                    value = work(connection, repeated)
                self._connected = True
                if write and not durable and self._flusher is not None:
                    self._flusher.nudge()
                return value
            except SQLAlchemyError as error:
                deadline = deadline or time.monotonic() + self._reconnect_seconds
                again = self._connected and is_lost(error) and time.monotonic() < deadline
                if not again:
                    raise translate(error) from error
            repeated = True
            # Pooled connections lead to the same server, which may have become a standby.
            self.engine.dispose()
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
            pause = min(pause * 2, 1.0)

    def close(self) -> None:
        """Close every connection."""
        if self._flusher is not None:
            self._flusher.close()
        self.engine.dispose()


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(
        url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}, pool_size=2
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        # The driver must not begin transactions by itself: _begin does.
        connection.isolation_level = None
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").close()
        except BaseException:
            connection.close()  # nobody else knows it yet
            raise

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        synchronous = connection.get_execution_options().get("dagger_kernel_write")
        if synchronous is None:
            connection.exec_driver_sql("BEGIN")
            return
        connection.exec_driver_sql(f"PRAGMA synchronous={synchronous}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def postgresql_url(url: URL) -> URL:
    """Return a PostgreSQL URL with what its own query leaves open.

    A dead peer is noticed within about half a minute.
    """
    defaults = {
        "connect_timeout": "10",
        "keepalives_idle": "15",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "30000",
        "application_name": "dagger_kernel",
    }
    return url.set(query=defaults | dict(url.query))


def _postgresql_engine(url: URL) -> Engine:
    engine = create_engine(
        postgresql_url(url),
        # One process is one kernel: it seldom needs more than one connection.
        pool_size=1,
        max_overflow=4,
        pool_timeout=BUSY_SECONDS,
        isolation_level="READ COMMITTED",
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.execute(f"SET lock_timeout = {int(BUSY_SECONDS * 1000)}")
        connection.execute("SET idle_in_transaction_session_timeout = 60000")
        connection.execute("SET client_encoding = 'UTF8'")
        connection.commit()

    return engine

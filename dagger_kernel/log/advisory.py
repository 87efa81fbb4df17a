"""PostgreSQL's side of locks: one session per process that holds advisory locks.

Such locks end with the session, so a crashed kernel frees what it held, on whichever machine it ran.
The locks of a process share one connection, besides the log's own: a server's connections are few.
Nothing here blocks in the server; callers ask again (the connection is shared by several threads).
"""

from __future__ import annotations

import atexit
import hashlib
import os
import socket
import threading
from typing import Any

from sqlalchemy import URL

from ..errors import LogError, LogUnavailableError
from .database import postgresql_url
from .faults import driver_errors

_sessions: dict[tuple[int, str], AdvisorySession] = {}
_registry = threading.Lock()


class AdvisorySession:
    """A connection that holds locks. It is opened when first needed and again when it was lost.

    Attributes
    ----------
    generation
        Counts connections: locks taken under an earlier number are lost.
    """

    def __init__(self, url: URL) -> None:
        self._url = url
        self._connection: Any = None
        self._mutex = threading.RLock()
        self._held: set[object] = set()
        self.generation = 0

    def claim(self, name: object) -> bool:
        """Note in this process that a name is taken; False: it is already.

        A session may take its own lock twice, so that threads of one process need this besides.
        """
        with self._mutex:
            if name in self._held:
                return False
            self._held.add(name)
            return True

    def disclaim(self, name: object) -> None:
        """Undo `claim`."""
        with self._mutex:
            self._held.discard(name)

    def row(self, query: str, *parameters: Any, again: bool = False) -> Any:
        """Return the first row of a query's answer.

        Parameters
        ----------
        query, parameters
            SQL and its ``%s``.
        again
            Whether the query may be asked again on another connection if this one turns out to be lost:
            only where nothing depends on locks that it held.

        Raises
        ------
        LogUnavailableError
            The connection is lost (the next call opens another) or cannot be made.
        """
        import psycopg

        with self._mutex:
            kept = self._connection is not None
            try:
                if self._connection is None:
                    self._connection = self._connect()
                return self._connection.execute(query, parameters).fetchone()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self.close()
                if again and kept:
                    return self.row(query, *parameters)
                raise LogUnavailableError(
                    f"The log's database does not answer: {str(error).strip()}."
                ) from error
            except driver_errors() as error:
                raise LogError(f"The log's database refused: {str(error).strip()}.") from error

    def close(self) -> None:
        """Close the connection: every lock it held is free. The next use opens another."""
        with self._mutex:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connect(self) -> Any:
        import psycopg

        name = f"dagger_kernel {os.getpid()}@{socket.gethostname()}"[:63]
        # SQLAlchemy knows which parts of its URL are which of the driver's arguments.
        _, arguments = self._url.get_dialect()().create_connect_args(self._url)
        arguments["application_name"] = name
        connection = psycopg.connect(**arguments, autocommit=True)
        self.generation += 1
        return connection


def session(url: URL) -> AdvisorySession:
    """Return this process's session for a database."""
    url = postgresql_url(url)
    key = (os.getpid(), url.render_as_string(hide_password=False))
    with _registry:
        if key not in _sessions:
            _sessions[key] = AdvisorySession(url)
        return _sessions[key]


def close_sessions() -> None:
    """Close this process's sessions; at its end, and between tests."""
    with _registry:
        mine = [key for key in _sessions if key[0] == os.getpid()]
        for key in mine:
            _sessions.pop(key).close()


atexit.register(close_sessions)


def key64(text: str) -> int:
    """Return a lock's number: 64 bits, signed."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)


def key31(text: str) -> int:
    """Return a lock class's number: 31 bits, so that signed and unsigned views agree."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1

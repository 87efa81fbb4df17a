"""One holder per sandbox, across threads, processes and (on PostgreSQL) machines."""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ..errors import LogUnavailableError, SandboxBusyError, SandboxNotFoundError
from ..settings import Settings
from . import advisory
from .database import Database
from .faults import from_os_error
from .private import make_private_directory

_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}")
_POLL_SECONDS = 0.02
_NOTE_BYTES = 256


class _Backend(Protocol):
    def take(self) -> bool: ...
    def free(self) -> None: ...
    def holder(self) -> str: ...
    def lost(self) -> bool: ...


class SandboxLock:
    """The right to append to one sandbox and to run its steps.

    A use case takes it around one step. The death of the holder, however it dies, frees it. It is not
    re-entrant: a second lock of the same sandbox in the same process waits like any other.

    Parameters
    ----------
    settings
        Which log.
    sandbox_id
        The whole id.
    holder
        Who holds it, for the message of who waits; default: this process.
    """

    def __init__(self, settings: Settings, sandbox_id: str, *, holder: str = "") -> None:
        if not _NAME.fullmatch(sandbox_id):
            raise SandboxNotFoundError(sandbox_id)
        self.sandbox_id = sandbox_id
        self._held = False
        self._backend: _Backend
        database = Database.locate(settings)
        if isinstance(database, Path):
            directory = database.parent / "locks"
            self._backend = _FileBackend(directory / f"{sandbox_id}.lock", holder)
        else:
            self._backend = _AdvisoryBackend(advisory.session(database), sandbox_id)

    @property
    def held(self) -> bool:
        """Whether this object holds the lock, as far as it knows."""
        return self._held

    def acquire(self, timeout: float = 0.0, *, cancelled: Callable[[], bool] | None = None) -> None:
        """Take the lock.

        Parameters
        ----------
        timeout
            How long to wait for the holder, in seconds.
        cancelled
            Asked while waiting; true ends the wait as the timeout does.

        Raises
        ------
        SandboxBusyError
            Somebody else still holds it.
        LogUnavailableError, StorageFullError
            The lock cannot be reached or made.
        """
        deadline = time.monotonic() + timeout
        while not self._backend.take():
            left = deadline - time.monotonic()
            if left <= 0 or (cancelled is not None and cancelled()):
                raise SandboxBusyError(self.sandbox_id, self._backend.holder())
            time.sleep(min(_POLL_SECONDS, left))
        self._held = True

    def renew(self) -> None:
        """Make sure that the lock is still held; PostgreSQL's are lost with its connection.

        Raises
        ------
        SandboxBusyError
            It was lost and somebody else has it.
        LogUnavailableError
            The database does not answer.
        """
        if self._held and self._backend.lost():
            self._held = False
            self._backend.free()
            self.acquire()

    def release(self) -> None:
        """Free the lock; nothing when it is not held."""
        if self._held:
            self._held = False
            self._backend.free()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class _FileBackend:
    """A locked file beside the database; its text says who holds it."""

    def __init__(self, path: Path, holder: str) -> None:
        self._path, self._holder = path, holder
        self._descriptor = -1

    def take(self) -> bool:
        try:
            descriptor = self._open()
        except OSError as error:
            raise from_os_error(error) from error
        if not lock_descriptor(descriptor):
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        note = {"pid": os.getpid(), "host": socket.gethostname(), "holder": self._holder}
        text = json.dumps(note).encode().ljust(_NOTE_BYTES)
        try:
            # Mostly the same process as before: reading costs a tenth of writing.
            if os.pread(descriptor, len(text), 0) != text:
                os.pwrite(descriptor, text, 0)
                os.truncate(descriptor, len(text))
        except OSError:
            pass  # the note is a courtesy; a full disk must not stop who holds the lock
        return True

    def free(self) -> None:
        # Unlocking, not only closing: a forked child may have inherited the descriptor.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def holder(self) -> str:
        try:
            note = json.loads(self._path.read_bytes())
            return note["holder"] or f"process {note['pid']} on {note['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"

    def lost(self) -> bool:
        return False

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            make_private_directory(self._path.parent)
            return os.open(self._path, flags, 0o600)


class _AdvisoryBackend:
    """An advisory lock of this process's PostgreSQL session."""

    def __init__(self, session: advisory.AdvisorySession, sandbox_id: str) -> None:
        self._session, self._key = session, advisory.key64("sandbox " + sandbox_id)
        self._generation = 0

    def take(self) -> bool:
        if not self._session.claim(self._key):
            return False
        taken = False
        try:
            (taken,) = self._session.row("SELECT pg_try_advisory_lock(%s)", self._key, again=True)
            self._generation = self._session.generation
        finally:
            if not taken:
                self._session.disclaim(self._key)
        return bool(taken)

    def free(self) -> None:
        try:
            if self._generation == self._session.generation:
                self._session.row("SELECT pg_advisory_unlock(%s)", self._key)
        except LogUnavailableError:
            pass  # the lock went with the connection
        finally:
            self._session.disclaim(self._key)

    def holder(self) -> str:
        high, low = (self._key >> 32) & 0xFFFFFFFF, self._key & 0xFFFFFFFF
        row = self._session.row(
            "SELECT a.application_name, a.client_addr FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "
            "AND l.classid = %s AND l.objid = %s",
            high,
            low,
        )
        if row is None or not row[0]:
            return "another process"
        return "process " + str(row[0]).removeprefix("dagger_kernel ").replace("@", " on ")

    def lost(self) -> bool:
        try:
            self._session.row("SELECT 1")
        except LogUnavailableError:
            return True
        return self._generation != self._session.generation


def lock_descriptor(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file at once; False: somebody else has it."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""Where tickets stand: files beside a SQLite log, or a sequence and advisory locks of PostgreSQL."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from pathlib import Path
from typing import Protocol

from ..errors import LogUnavailableError
from . import advisory
from .faults import from_os_error
from .locks import lock_descriptor
from .private import make_private_directory

_NAME = re.compile(r"[0-9]{10}-[0-9a-f]{8}")


class Queue(Protocol):
    """Where tickets stand."""

    def enter(self, places: int) -> tuple[int, Place | None]:
        """Return the number of live tickets, and a place behind them unless they are ``places``."""


class Place(Protocol):
    """A ticket's place; alive until its process leaves or dies."""

    def ahead(self) -> int:
        """Return how many live tickets stand before this one; raises `PlaceLostError`."""

    def leave(self) -> None:
        """Give the place up."""


class PlaceLostError(Exception):
    """The connection that held a place is gone."""


class FileQueue:
    """Tickets are locked files in a directory, named by their number."""

    def __init__(self, directory: Path, *, shared: bool) -> None:
        self.directory = directory
        self._shared = shared

    def enter(self, places: int) -> tuple[int, FilePlace | None]:
        """See `Queue.enter`."""
        try:
            mutex = self._open_mutex()
        except OSError as error:
            raise from_os_error(error) from error
        try:
            # One at a time, for microseconds: numbers are in order, and the count is true.
            fcntl.flock(mutex, fcntl.LOCK_EX)
            names = self.living(self.names())
            if len(names) >= places:
                return len(names), None
            number = int(names[-1].partition("-")[0]) + 1 if names else 1
            return len(names), self._make(f"{number:010d}-{secrets.token_hex(4)}")
        except OSError as error:
            raise from_os_error(error) from error
        finally:
            fcntl.flock(mutex, fcntl.LOCK_UN)
            os.close(mutex)

    def names(self) -> list[str]:
        """Return the tickets, dead ones too, in order."""
        return sorted(name for name in os.listdir(self.directory) if _NAME.fullmatch(name))

    def living(self, names: list[str]) -> list[str]:
        """Return those of the tickets whose process lives, and remove the others."""
        return [name for name in names if self._lives(name)]

    def _lives(self, name: str) -> bool:
        path = self.directory / name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            if not lock_descriptor(descriptor, shared=True):
                return True
            try:
                os.unlink(path)
            except OSError:
                pass  # another's, in a shared directory: it counts as dead all the same
            return False
        finally:
            os.close(descriptor)

    def _make(self, name: str) -> FilePlace:
        # Locked before it gets its name: whoever sees a ticket unlocked may take it for dead.
        temporary = self.directory / f"new-{name}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o644 if self._shared else 0o600)
        try:
            lock_descriptor(descriptor)
            os.rename(temporary, self.directory / name)
        except BaseException:
            os.close(descriptor)
            raise
        return FilePlace(self, name, descriptor)

    def _open_mutex(self) -> int:
        path = self.directory / "queue.lock"
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            # Without O_CREAT first: Linux refuses it on others' files in a shared directory.
            return os.open(path, flags)
        except FileNotFoundError:
            self._make_directory()
            descriptor = os.open(path, flags | os.O_CREAT, 0o600)
            if self._shared:
                os.fchmod(descriptor, 0o666)
            return descriptor

    def _make_directory(self) -> None:
        if not self._shared:
            make_private_directory(self.directory)
            return
        for folder in (self.directory.parent, self.directory):
            try:
                os.mkdir(folder)
                os.chmod(folder, 0o1777)  # noqa: S103 - sticky, like /tmp
            except FileExistsError:
                continue  # the administrator's, or another user was first


class FilePlace:
    """A locked file."""

    def __init__(self, queue: FileQueue, name: str, descriptor: int) -> None:
        self._queue, self._name, self._descriptor = queue, name, descriptor

    def ahead(self) -> int:
        """See `Place.ahead`."""
        try:
            before = [name for name in self._queue.names() if name < self._name]
            return len(self._queue.living(before))
        except OSError as error:
            raise from_os_error(error) from error

    def leave(self) -> None:
        """See `Place.leave`."""
        try:
            os.unlink(self._queue.directory / self._name)
        except OSError:
            pass  # unlocked it is dead as well
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


class AdvisoryQueue:
    """Tickets are numbers of a sequence, alive by advisory locks of class ``engine``."""

    def __init__(self, session: advisory.AdvisorySession, engine: str) -> None:
        self.session, self.group = session, advisory.key31("slots " + engine)

    def enter(self, places: int) -> tuple[int, AdvisoryPlace | None]:
        """See `Queue.enter`."""
        ticket, others = self.session.row(
            "SELECT ticket, others FROM dagger_kernel_enter(%s, %s)",
            self.group,
            places,
            again=True,
        )
        return int(others), None if ticket is None else AdvisoryPlace(self, int(ticket))


class AdvisoryPlace:
    """An advisory lock of this process's session."""

    def __init__(self, queue: AdvisoryQueue, ticket: int) -> None:
        self._queue, self._ticket = queue, ticket
        self._generation = queue.session.generation

    def ahead(self) -> int:
        """See `Place.ahead`."""
        session = self._queue.session
        if self._generation != session.generation:
            raise PlaceLostError
        try:
            (ahead,) = session.row(
                "SELECT dagger_kernel_ahead(%s, %s)", self._queue.group, self._ticket
            )
        except LogUnavailableError:
            raise PlaceLostError from None
        return int(ahead)

    def leave(self) -> None:
        """See `Place.leave`."""
        session = self._queue.session
        if self._generation != session.generation:
            return
        try:
            session.row("SELECT pg_advisory_unlock(%s, %s)", self._queue.group, self._ticket)
        except LogUnavailableError:
            pass  # it went with the connection

"""How many steps run and wait on one engine, across processes: a queue of tickets.

Who wants to run a step takes a ticket. A ticket may run when fewer live tickets than ``max_running``
stand before it, and is refused when ``max_running + max_queued`` do. So the order is the order of
arrival, and one rule makes both limits. A ticket is alive while its process holds a lock on it (a locked file;
an advisory lock on PostgreSQL): a dead process leaves the queue by itself.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ..errors import CapacityError, LogUnavailableError
from ..settings import Settings
from . import advisory
from .database import Database
from .faults import from_os_error
from .locks import lock_descriptor

_POLL_SECONDS = 0.03
_NAME = re.compile(r"[0-9]{10}-[0-9a-f]{8}")


class _Queue(Protocol):
    """Where tickets stand.

    `enter` gives the number of live tickets and a place behind them, or no place if they are ``places`` or more.
    """

    def enter(self, places: int) -> tuple[int, _Place | None]: ...


class _Place(Protocol):
    def ahead(self) -> int: ...
    def leave(self) -> None: ...


class Slots:
    """The running places and the queue of one engine.

    Parameters
    ----------
    settings
        Which log, and ``max_running`` and ``max_queued``.
    engine
        Name of the engine; engines do not share places.
    limits
        Called for ``(max_running, max_queued)`` whenever they matter, so that they can change while
        steps wait; default: those of the settings.
    directory
        Where the tickets are, instead of beside the SQLite log: one that several users can write makes them
        share one queue.
    """

    def __init__(
        self,
        settings: Settings,
        engine: str,
        *,
        limits: Callable[[], tuple[int, int]] | None = None,
        directory: Path | None = None,
    ) -> None:
        self._limits = limits or (lambda: (settings.max_running, settings.max_queued))
        self._queue: _Queue
        database = Database.locate(settings)
        if directory is not None:
            self._queue = _FileQueue(directory / engine, shared=True)
        elif isinstance(database, Path):
            self._queue = _FileQueue(database.parent / "slots" / engine, shared=False)
        else:
            self._queue = _AdvisoryQueue(advisory.session(database), engine)

    def enter(self) -> Ticket:
        """Take a ticket, without waiting. Ask `Ticket.position` until it is 0, then run.

        Raises
        ------
        CapacityError
            As many steps wait as may.
        LogUnavailableError, StorageFullError
            The queue cannot be reached or written.
        """
        running, queued = self._limits()
        others, place = self._queue.enter(running + queued)
        if place is None:
            raise CapacityError(min(others, running), max(0, others - running))
        return Ticket(self, place, ready=others < running)

    def acquire(
        self,
        on_position: Callable[[int], None] | None = None,
        *,
        cancelled: Callable[[], bool] | None = None,
        timeout: float | None = None,
    ) -> Ticket:
        """Take a ticket and wait until it may run.

        Parameters
        ----------
        on_position
            Called with the place in the queue (1: the next) whenever it changes, and with 0 at the
            end of a wait; not called when there is nothing to wait for.
        cancelled
            Asked while waiting; true ends the wait as the timeout does.
        timeout
            How long to wait, in seconds; None: as long as it takes.

        Raises
        ------
        CapacityError
            As many steps wait as may, or the wait ended before the turn came.
        LogUnavailableError, StorageFullError
            The queue cannot be reached or written.
        """
        ticket = self.enter()
        deadline = None if timeout is None else time.monotonic() + timeout
        shown = 0
        try:
            while position := ticket.position():
                if position != shown and on_position is not None:
                    on_position(position)
                shown = position
                late = deadline is not None and time.monotonic() >= deadline
                if late or (cancelled is not None and cancelled()):
                    running, _ = self._limits()
                    raise CapacityError(running, position)
                time.sleep(_POLL_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311
            if shown and on_position is not None:
                on_position(0)
        except BaseException:
            ticket.release()
            raise
        return ticket


class Ticket:
    """A place among the running or the waiting; leave it by `release` (or ``with``)."""

    def __init__(self, slots: Slots, place: _Place, *, ready: bool) -> None:
        self._slots = slots
        self._place: _Place | None = place
        self._ready = ready

    def position(self) -> int:
        """Return 0 when the step may run, else its place in the queue, from 1.

        Raises
        ------
        CapacityError
            The place was lost with PostgreSQL's connection and there is no other.
        LogUnavailableError
            The queue cannot be reached.
        """
        if self._ready or self._place is None:
            return 0  # nobody gets ahead of it afterwards
        try:
            ahead = self._place.ahead()
        except _PlaceLost:
            other = self._slots.enter()  # at the end of the queue: the order was lost too
            self._place, self._ready, other._place = other._place, other._ready, None
            return self.position()
        running, _ = self._slots._limits()
        self._ready = ahead < running
        return max(0, ahead - running + 1)

    def release(self) -> None:
        """Leave. Idempotent."""
        place, self._place = self._place, None
        if place is not None:
            place.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class _PlaceLost(Exception):  # noqa: N818
    """The connection that held a place is gone."""


class _FileQueue:
    """Tickets are locked files in a directory, named by their number."""

    def __init__(self, directory: Path, *, shared: bool) -> None:
        self.directory = directory
        self._shared = shared

    def enter(self, places: int) -> tuple[int, _FilePlace | None]:
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

    def _make(self, name: str) -> _FilePlace:
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
        return _FilePlace(self, name, descriptor)

    def _open_mutex(self) -> int:
        path = self.directory / "queue.lock"
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            # Without O_CREAT first: Linux refuses it on others' files in a shared directory.
            return os.open(path, flags)
        except FileNotFoundError:
            mode = 0o777 if self._shared else 0o700
            self.directory.mkdir(mode=mode, parents=True, exist_ok=True)
            descriptor = os.open(path, flags | os.O_CREAT, 0o600)
            if self._shared:
                os.chmod(self.directory, 0o1777)  # noqa: S103 - sticky, like /tmp
                os.fchmod(descriptor, 0o666)
            return descriptor


class _FilePlace:
    def __init__(self, queue: _FileQueue, name: str, descriptor: int) -> None:
        self._queue, self._name, self._descriptor = queue, name, descriptor

    def ahead(self) -> int:
        try:
            before = [name for name in self._queue.names() if name < self._name]
            return len(self._queue.living(before))
        except OSError as error:
            raise from_os_error(error) from error

    def leave(self) -> None:
        try:
            os.unlink(self._queue.directory / self._name)
        except OSError:
            pass  # unlocked it is dead as well
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


class _AdvisoryQueue:
    """Tickets are numbers of a sequence, alive by advisory locks of class ``engine``."""

    def __init__(self, session: advisory.AdvisorySession, engine: str) -> None:
        self.session, self.group = session, advisory.key31("slots " + engine)

    def enter(self, places: int) -> tuple[int, _AdvisoryPlace | None]:
        ticket, others = self.session.row(
            "SELECT ticket, others FROM dagger_kernel_enter(%s, %s)", self.group, places
        )
        return int(others), None if ticket is None else _AdvisoryPlace(self, int(ticket))


class _AdvisoryPlace:
    def __init__(self, queue: _AdvisoryQueue, ticket: int) -> None:
        self._queue, self._ticket = queue, ticket
        self._generation = queue.session.generation

    def ahead(self) -> int:
        session = self._queue.session
        if self._generation != session.generation:
            raise _PlaceLost
        try:
            (ahead,) = session.row(
                "SELECT dagger_kernel_ahead(%s, %s)", self._queue.group, self._ticket
            )
        except LogUnavailableError:
            raise _PlaceLost from None
        return int(ahead)

    def leave(self) -> None:
        session = self._queue.session
        if self._generation != session.generation:
            return
        try:
            session.row("SELECT pg_advisory_unlock(%s, %s)", self._queue.group, self._ticket)
        except LogUnavailableError:
            pass  # it went with the connection

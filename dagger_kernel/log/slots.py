"""How many steps run and wait on one engine, across processes: a queue of tickets.

Who wants to run a step takes a ticket. A ticket may run when fewer live tickets than ``max_running``
stand before it, and is refused when ``max_running + max_queued`` do. So the order is the order of
arrival, and one rule makes both limits. A ticket is alive while its process holds a lock on it (a locked file;
an advisory lock on PostgreSQL): a dead process leaves the queue by itself.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from ..errors import CapacityError
from ..settings import Settings
from . import advisory
from .database import Database
from .tickets import AdvisoryQueue, FileQueue, Place, PlaceLostError, Queue

_POLL_SECONDS = 0.03
_NAME = re.compile(r"[0-9]{10}-[0-9a-f]{8}")


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
        self._queue: Queue
        database = Database.locate(settings)
        if directory is not None:
            self._queue = FileQueue(directory / engine, shared=True)
        elif isinstance(database, Path):
            self._queue = FileQueue(database.parent / "slots" / engine, shared=False)
        else:
            self._queue = AdvisoryQueue(advisory.session(database), engine)

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
    """A place among the running or the waiting; leave it by `release` (or ``with``).

    Attributes
    ----------
    ready
        Whether it is known that the step may run; else `position` tells.
    """

    def __init__(self, slots: Slots, place: Place, *, ready: bool) -> None:
        self._slots = slots
        self._place: Place | None = place
        self.ready = ready

    def position(self) -> int:
        """Return 0 when the step may run, else its place in the queue, from 1.

        Raises
        ------
        CapacityError
            The place was lost with PostgreSQL's connection and there is no other.
        LogUnavailableError
            The queue cannot be reached.
        """
        if self.ready or self._place is None:
            return 0  # nobody gets ahead of it afterwards
        try:
            ahead = self._place.ahead()
        except PlaceLostError:
            other = self._slots.enter()  # at the end of the queue: the order was lost too
            self._place, self.ready, other._place = other._place, other.ready, None
            return self.position()
        running, _ = self._slots._limits()
        self.ready = ahead < running
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

"""The watch over a running step: CPU time, memory, processes, the clock, interrupts."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from . import proc
from .children import Child
from .holdings import Holdings, Machine, holdings, segments
from .interrupts import LIMIT_SIGNAL
from .verdict import Verdict

INTERVAL = 0.1
"""Seconds between two looks at ``/proc``."""

GRACE = 2.0
"""Seconds the cell gets to end itself after a limit struck."""

DEAF = 1.0
"""Seconds after which an interrupt that reached no Python code ends the process."""

BOMB = 250
"""Processes over twice the limit from which on the cell itself is not spared."""

SLACK = 32 << 20
"""Bytes over the memory limit before processes are killed."""

SAVING = 60.0
"""Seconds that saving the state may take, of the clock and of CPU time."""

SAVING_FACTOR = 2
"""Times the limits of memory and disk that ending and saving may take."""

SAVING_PROCESSES = 8
"""Processes that saving may need: it tries what it wrote in one of its own."""


class Watch:
    """Look at a step while it runs, and act when a limit is passed."""

    def __init__(
        self,
        child: Child,
        limits: dict[str, float],
        verdict: Verdict,
        *,
        alone: bool,
        memory_events: int = -1,
    ) -> None:
        self.child = child
        self.limits = limits
        self.verdict = verdict
        self.alone = alone
        self._memory_events = memory_events
        self.begun = time.monotonic()
        self.next_look = self.begun + INTERVAL
        wall = limits["wall_seconds"]
        self._wall_at = self.begun + wall - min(GRACE, wall / 10)
        self._kill_at = 0.0
        self._deaf_at = 0.0
        self._noticed = 0
        self._swallowed = 0
        self._ended_at = 0.0
        self._baseline = proc.memory(child.pid)
        started = proc.read(child.pid)
        self._cpu_before = started.cpu if started else 0.0
        self._own_before = started.own if started else 0.0
        self._spent: dict[tuple[int, float], float] = {}
        self._spent_by_gone = 0.0
        self._machine = Machine.now()
        self._segments = segments()
        self._holdings, self._holdings_at = Holdings(), 0.0
        self.reaped = 0.0
        self.cpu = 0.0
        self.peak = 0
        self.processes = 1

    def interrupt(self) -> None:
        """Interrupt the cell; the second time, end it.

        Once the state is being saved there is nothing left to interrupt, and much to lose.
        """
        if self._ended_at:
            return
        self.verdict.interrupts += 1
        if self.verdict.interrupts > 1:
            self._kill("interrupt")
            return
        self._noticed = self.child.page.noticed
        self._deaf_at = time.monotonic() + DEAF
        self.next_look = min(self.next_look, self._deaf_at)
        self.child.signal(signal.SIGINT, group=True)

    def ended(self) -> None:
        """User code has ended; the state is being saved."""
        now = time.monotonic()
        self._ended_at = now
        self._deaf_at = 0.0
        self._kill_at = now + SAVING

    def look(self, now: float) -> None:
        """Take one look."""
        self.next_look = now + INTERVAL
        page = self.child.page
        if self._kill_at and now >= self._kill_at:
            self._kill(self.verdict.limit or "saving")
            return
        if self._deaf_at and now >= self._deaf_at:
            self._deaf_at = 0.0
            if page.noticed == self._noticed and not page.ignoring:
                self._kill("deaf")
                return
        if page.swallowed != self._swallowed:
            self._swallowed = page.swallowed
            self.child.signal(LIMIT_SIGNAL if self.verdict.limit else signal.SIGINT)
        self._sample()
        if self._ended_at:
            if self.cpu > self.limits["cpu_seconds"] + SAVING:
                self._kill("saving")
        elif self.verdict.limit:
            return
        elif now >= self._wall_at:
            self._strike("wall", now)
        elif self.cpu > self.limits["cpu_seconds"]:
            self._strike("cpu", now)

    @property
    def _late(self) -> bool:
        """Whether all that may still happen is saving: the code has ended, or was told to."""
        return bool(self._ended_at or self.verdict.limit)

    def _share(self, name: str) -> float:
        """Return what may be taken of a limit now."""
        return self.limits[name] * (SAVING_FACTOR if self._late else 1)

    def _sample(self) -> None:
        found = proc.below(os.getpid(), everything=self.alone)
        self.reaped += proc.reap(frozenset([self.child.pid]))
        self._count_cpu(found)
        count = sum(p.threads for p in found)
        self.processes = max(self.processes, count)
        memory = sum(proc.memory(p.pid) for p in found) - self._baseline * len(found)
        limit = self._share("memory_bytes")
        if memory > limit and len(found) > 1:
            memory = sum(proc.memory(p.pid, exact=True) for p in found) - self._baseline
        unmapped, disk = self._look_behind(found)
        memory += unmapped
        self.peak = max(self.peak, memory)
        most = SAVING_PROCESSES if self._ended_at else self.limits["processes"]
        # What Python refuses at the limit must stay below this one, with the room an error takes.
        if memory > limit * 1.05 + SLACK:
            self._overrun("memory")
        elif count > 2 * self.limits["processes"] or len(found) > most:
            self._overrun("processes")
        elif disk > self._share("disk_bytes"):
            self._overrun("disk")

    def _count_cpu(self, found: list[proc.Process]) -> None:
        """Add up CPU time: of who lives and who was waited for, and of all that were seen.

        The children of who ignores SIGCHLD are waited for by nobody; what was seen of them counts.
        """
        spent = {(p.pid, p.started): p.own for p in found}
        gone = self._spent.keys() - spent.keys()
        self._spent_by_gone += sum(self._spent[one] for one in gone)
        self._spent = spent
        seen = sum(spent.values()) + self._spent_by_gone - self._own_before
        told = sum(p.cpu for p in found) + self.reaped - self._cpu_before
        self.cpu = max(self.cpu, seen, told)

    def _look_behind(self, found: list[proc.Process]) -> tuple[int, int]:
        """Return the bytes of memory and disk that only descriptors hold; looked up less often the longer it takes."""
        now = time.monotonic()
        if now >= self._holdings_at:
            self._holdings = holdings(p.pid for p in found)
            self._holdings_at = now + 10 * (time.monotonic() - now)
        held = self._holdings
        memory, disk = held.memory - self._segments, held.disk
        if memory > 0:
            memory -= sum(proc.shared(p.pid) for p in found)
        if held.hidden:
            # Nobody else's growth is told from its own: who hides has the benefit of no doubt.
            machine = Machine.now()
            memory = max(memory, machine.shared - self._machine.shared)
            disk = max(disk, machine.used - self._machine.used)
        return max(0, memory), max(0, disk)

    def _overrun(self, reason: str) -> None:
        """End the cell's other processes at once; the cell itself gets a moment, if it is not the one."""
        if reason == "processes" and self.alone and self.processes > BOMB + 2 * self.limits[reason]:
            # They multiply faster than they can be looked at: all go together.
            self.verdict.limit = reason
            self._kill(reason)
            proc.kill_below(os.getpid(), frozenset(), everything=True)
            return
        late, most = self._late, self._share("memory_bytes")
        own = proc.memory(self.child.pid) - self._baseline
        # The cell stands still meanwhile: it may be the one that makes the others, and an exception that
        # strikes while it forks is thrown away by Python.
        self.child.signal(signal.SIGSTOP)
        others = proc.kill_below(os.getpid(), frozenset([self.child.pid]), everything=self.alone)
        if late:
            self.verdict.limit = self.verdict.limit or reason  # no code is left to be told
        else:
            self._strike(reason, time.monotonic())
        self.child.signal(signal.SIGCONT)
        if (not others or own > most) and (late or reason != "disk"):
            self._kill(reason)

    def _strike(self, reason: str, now: float) -> None:
        # The cell can write on the page: it tells the cell, never us.
        self.child.page.limit = reason
        self.verdict.limit = reason
        self._kill_at = now + GRACE
        self.child.signal(LIMIT_SIGNAL)

    def _kill(self, cause: str) -> None:
        self.verdict.cause = cause
        self._kill_at = 0.0
        self.child.signal(signal.SIGKILL)

    def final_look(self) -> None:
        """Take the last figures before everything is ended."""
        if not self.verdict.limit and proc.memory_kills(self._memory_events):
            self.verdict.limit = "memory"  # the operating system was faster than our looks
        if self.child.status is None:
            found = proc.read(self.child.pid)
            if found:
                self.cpu = max(self.cpu, found.cpu + self.reaped - self._cpu_before)
                self.peak = max(self.peak, proc.memory(self.child.pid) - self._baseline)
        else:
            self.cpu = max(self.cpu, self.child.cpu + self.reaped - self._cpu_before)

    def usage(self) -> dict[str, Any]:
        """Return what the step used."""
        end = time.monotonic()
        return {
            "wall_seconds": round(end - self.begun, 4),
            "run_seconds": round((self._ended_at or end) - self.begun, 4),
            "cpu_seconds": round(max(0.0, self.cpu), 2),
            "memory_bytes": max(0, self.peak),
            "processes": self.processes,
            "interrupts": self.verdict.interrupts,
        }

"""The watch over a running step: CPU time, memory, processes, the clock, interrupts."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from . import proc
from .children import Child
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
"""Seconds that saving the state may take."""


class Watch:
    """Look at a step while it runs, and act when a limit is passed."""

    def __init__(
        self, child: Child, limits: dict[str, float], verdict: Verdict, *, alone: bool
    ) -> None:
        self.child = child
        self.limits = limits
        self.verdict = verdict
        self.alone = alone
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
        self._held, self._held_at = 0, 0.0
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
            self._kill(page.limit or "saving")
            return
        if self._deaf_at and now >= self._deaf_at:
            self._deaf_at = 0.0
            if page.noticed == self._noticed and not page.ignoring:
                self._kill("deaf")
                return
        if page.swallowed != self._swallowed:
            self._swallowed = page.swallowed
            self.child.signal(LIMIT_SIGNAL if page.limit else signal.SIGINT)
        self._sample()
        if self._ended_at or page.limit:
            return
        if now >= self._wall_at:
            self._strike("wall", now)
        elif self.cpu > self.limits["cpu_seconds"]:
            self._strike("cpu", now)

    def _sample(self) -> None:
        found = proc.below(os.getpid(), everything=self.alone)
        self.reaped += proc.reap(frozenset([self.child.pid]))
        self.cpu = max(self.cpu, sum(p.cpu for p in found) + self.reaped - self._cpu_before)
        count = sum(p.threads for p in found)
        self.processes = max(self.processes, count)
        memory = sum(proc.memory(p.pid) for p in found) - self._baseline * len(found)
        limit = self.limits["memory_bytes"] * (2 if self._ended_at else 1)
        if memory > limit and len(found) > 1:
            memory = sum(proc.memory(p.pid, exact=True) for p in found) - self._baseline
        memory += self._unmapped(found)
        self.peak = max(self.peak, memory)
        if self._ended_at or self.child.page.limit:
            return
        # What Python refuses at the limit must stay below this one, with the room an error takes.
        if memory > limit * 1.05 + SLACK:
            self._overrun("memory")
        elif count > 2 * self.limits["processes"] or len(found) > self.limits["processes"]:
            self._overrun("processes")

    def _unmapped(self, found: list[proc.Process]) -> int:
        """Return the bytes in memory files that no process has mapped; looked up less often the longer it takes."""
        now = time.monotonic()
        if now >= self._held_at:
            self._held = proc.held(p.pid for p in found)
            self._held_at = now + 10 * (time.monotonic() - now)
        if not self._held:
            return 0
        return max(0, self._held - sum(proc.shared(p.pid) for p in found))

    def _overrun(self, reason: str) -> None:
        """End the cell's other processes at once; the cell itself gets a moment, if it is not the one."""
        if reason == "processes" and self.alone and self.processes > BOMB + 2 * self.limits[reason]:
            # They multiply faster than they can be looked at: all go together.
            self.verdict.limit = reason
            self._kill(reason)
            proc.kill_below(os.getpid(), frozenset(), everything=True)
            return
        own = proc.memory(self.child.pid) - self._baseline
        # The cell stands still meanwhile: it may be the one that makes the others, and an exception that
        # strikes while it forks is thrown away by Python.
        self.child.signal(signal.SIGSTOP)
        others = proc.kill_below(os.getpid(), frozenset([self.child.pid]), everything=self.alone)
        self._strike(reason, time.monotonic())
        self.child.signal(signal.SIGCONT)
        if not others or (reason == "memory" and own > self.limits["memory_bytes"]):
            self._kill(reason)

    def _strike(self, reason: str, now: float) -> None:
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

"""What runs in the sandbox, read from ``/proc``: processes, their CPU time and memory."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

TICK = os.sysconf("SC_CLK_TCK")

HELPERS = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver", b"loky")
"""Command lines of helpers that libraries leave behind on purpose; nobody needs to hear of them."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process: its parent, name, threads, and CPU time with that of its reaped children."""

    pid: int
    parent: int
    name: str
    state: str
    threads: int
    cpu: float


def read(pid: int) -> Process | None:
    """Return a process, None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            text = stream.read()
    except OSError:
        return None
    start, end = text.find(b"("), text.rfind(b")")
    fields = text[end + 2 :].split()
    return Process(
        pid,
        int(fields[1]),
        text[start + 1 : end].decode("utf-8", "replace"),
        fields[0].decode(),
        int(fields[17]),
        sum(int(value) for value in fields[11:15]) / TICK,
    )


def below(root: int, *, everything: bool) -> list[Process]:
    """Return the live processes under a process.

    Parameters
    ----------
    root
        The process whose descendants are wanted.
    everything
        Whether all processes one can see are meant: true for the init of a pid namespace.
    """
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != root and (process := read(int(entry))):
            found[process.pid] = process
    if everything:
        return [process for process in found.values() if process.state not in "ZX"]
    ours = {root}
    grown = True
    while grown:
        more = {p.pid for p in found.values() if p.parent in ours and p.pid not in ours}
        grown = bool(more)
        ours |= more
    return [p for pid, p in found.items() if pid in ours and p.state not in "ZX"]


def memory(pid: int, *, exact: bool = False) -> int:
    """Return the anonymous and shared memory of a process in bytes, 0 if it is gone.

    Parameters
    ----------
    pid
        The process.
    exact
        Count shared pages by their share (slow: the kernel walks the page tables). A forked
        process shares nearly everything with its parent, so plain sums are too high.
    """
    path, names = f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:")
    if exact:
        path, names = f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")
    total = 0
    try:
        with open(path, "rb") as stream:
            for line in stream:
                if line.startswith(names):
                    total += int(line.split()[1]) * 1024
    except OSError:
        return 0
    return total


def is_helper(pid: int) -> bool:
    """Whether a process is a helper that a library leaves running on purpose."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            command = stream.read(4096)
    except OSError:
        return False
    return any(name in command for name in HELPERS)


def kill_below(root: int, spare: frozenset[int], *, everything: bool) -> list[str]:
    """Kill what runs under a process, except those spared, until nothing is left.

    Returns
    -------
    list of str
        Names of what was killed, helpers left out.
    """
    names: dict[int, str] = {}
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        left = [p for p in below(root, everything=everything) if p.pid not in spare]
        if not left:
            break
        for process in left:
            if process.pid not in names and not is_helper(process.pid):
                names[process.pid] = process.name
            try:
                os.kill(process.pid, signal.SIGKILL)
            except OSError:
                pass
        reap(spare)
        time.sleep(0.001)
    return list(names.values())


def reap(spare: frozenset[int] = frozenset()) -> float:
    """Collect ended children of this process, except those spared; return their CPU time.

    Children are looked at one by one, so that the exit of a spared one is left for its owner.
    """
    seconds = 0.0
    try:
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid in spare:
                return seconds
            _pid, _status, usage = os.wait4(found.si_pid, os.WNOHANG)
            seconds += usage.ru_utime + usage.ru_stime
    except ChildProcessError:
        return seconds

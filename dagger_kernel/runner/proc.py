"""What runs in the sandbox, read from ``/proc``: processes, their CPU time and memory."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

TICK = os.sysconf("SC_CLK_TCK")

CROWD = 20
"""Processes from which on they are ended together, so that none escapes by forking."""

HELPERS = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver", b"loky")
"""Command lines of helpers that libraries leave behind on purpose; nobody needs to hear of them."""

FORKED_SECONDS = 1.0
"""How long a child that was forked may take to become another program; later it is taken for what it is."""
FORKED_CPU = 0.05
"""Seconds of CPU time that this takes at most."""
LOADING_SECONDS = 5.0
"""How long this may take on a busy machine, with the loading of the program."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process.

    ``own`` is its CPU time, ``cpu`` that with its reaped children's, ``started`` its start, all in seconds
    (since boot).
    """

    pid: int
    parent: int
    name: str
    state: str
    threads: int
    own: float
    cpu: float
    started: float


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
        sum(int(value) for value in fields[11:13]) / TICK,
        sum(int(value) for value in fields[11:15]) / TICK,
        int(fields[19]) / TICK,
    )


def below(root: int, *, everything: bool) -> list[Process]:
    """Return the live processes under a process.

    Parameters
    ----------
    root
        The process whose descendants are wanted.
    everything
        Whether all processes one can see are meant, but for the init: in a pid namespace of the step's own.
    """
    if everything:
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
        found = [process for pid in pids if pid not in (1, root) and (process := read(pid))]
    else:
        found = _descendants(root)
    return [process for process in found if process.state not in "ZX"]


def _descendants(root: int) -> list[Process]:
    """Walk down from a process by the kernel's lists of children."""
    found: dict[int, Process] = {}
    left = [root]
    while left:
        for child in _children(left.pop()):
            if child not in found and (process := read(child)):
                found[child] = process
                left.append(child)
    return list(found.values())


def _children(pid: int) -> list[int]:
    """Return the children that all threads of a process have."""
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as stream:
                children += map(int, stream.read().split())
    except FileNotFoundError:
        if os.path.exists(f"/proc/{pid}") and not os.path.exists(
            f"/proc/{pid}/task/{pid}/children"
        ):
            return _children_by_scan(pid)
    except OSError:
        pass
    return children


def _children_by_scan(pid: int) -> list[int]:
    """Find children on a kernel without such lists."""
    every = (read(int(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    return [process.pid for process in every if process and process.parent == pid]


def memory(pid: int, *, exact: bool = False) -> int:
    """Return the anonymous and shared memory of a process and its page tables in bytes, 0 if it is gone.

    Parameters
    ----------
    pid
        The process.
    exact
        Count shared pages by their share, where the process lets us (slow: the kernel walks the page tables). A
        forked process shares nearly everything with its parent, so plain sums are too high.
    """
    found = _kilobytes(pid, "status", (b"RssAnon:", b"RssShmem:", b"VmPTE:"))
    shares = _kilobytes(pid, "smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")) if exact else {}
    if shares:
        found = shares | {b"VmPTE:": found.get(b"VmPTE:", 0)}
    return sum(found.values()) * 1024


def _kilobytes(pid: int, file: str, names: tuple[bytes, ...]) -> dict[bytes, int]:
    """Read values of a file in a process's directory; none if it is gone or refuses."""
    try:
        with open(f"/proc/{pid}/{file}", "rb") as stream:
            lines = [line.split() for line in stream if line.startswith(names)]
    except OSError:
        return {}
    return {line[0]: int(line[1]) for line in lines}


def shared(pid: int) -> int:
    """Return the shared memory that a process has mapped, in bytes, 0 if it is gone."""
    return sum(_kilobytes(pid, "status", (b"RssShmem:",)).values()) * 1024


def memory_kills(events: int) -> int:
    """Return how many processes were killed for their memory, of ``memory.events`` (-1: 0)."""
    if events < 0:
        return 0
    try:
        lines = os.pread(events, 4096, 0).splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(b"oom_kill "))


def command(pid: int) -> bytes:
    """Return the command line of a process, nothing if it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return stream.read(4096)
    except OSError:
        return b""


def is_helper(pid: int) -> bool:
    """Whether a process is a helper that a library leaves running on purpose."""
    line = command(pid)
    return any(name in line for name in HELPERS)


def let_start(root: int, cell: int, *, everything: bool) -> None:
    """Give children that were forked just now a moment to become what they are to be.

    Only then their names say something, and helpers are known as such.
    """
    own, begun = command(cell), time.monotonic()
    while (waited := time.monotonic() - begun) < LOADING_SECONDS:
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        found = below(root, everything=everything)
        young = [p for p in found if p.pid != cell and now - p.started < LOADING_SECONDS + waited]
        if not any(_is_starting(p, own, now) for p in young):
            return
        time.sleep(0.005)


def _is_starting(process: Process, own: bytes, now: float) -> bool:
    """Whether a young process has no program of its own yet. Without a command line one is being loaded."""
    line = command(process.pid)
    if line == own:
        # On a busy machine it may not have had its turn: it has hardly run, and wants to.
        waits = process.own < FORKED_CPU and process.state in "RD"
        return waits or now - process.started < FORKED_SECONDS
    return line == b""


def kill_below(root: int, spare: frozenset[int], *, everything: bool) -> list[str]:
    """Kill what runs under a process, except those spared, until nothing is left.

    Returns
    -------
    list of str
        Names of what was killed, helpers left out.
    """
    names: dict[int, str] = {}
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline:
        left = [p for p in below(root, everything=everything) if p.pid not in spare]
        if not left:
            break
        if len(left) > CROWD and everything and not spare:
            _send(-1, signal.SIGKILL)  # all but ourselves, in one go
        elif len(left) > CROWD:
            # Stopped ones fork no more: else new ones come while the old are killed.
            for process in left:
                _send(process.pid, signal.SIGSTOP)
            left = [p for p in below(root, everything=everything) if p.pid not in spare]
        for process in left:
            if process.pid not in names and not is_helper(process.pid):
                names[process.pid] = process.name
            _send(process.pid, signal.SIGKILL)
        reap(spare)
        time.sleep(0.001)
    return list(names.values())


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass  # it has just ended


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

"""The limits of a step inside the sandbox: setting them, and saying what struck.

What the operating system can refuse (an allocation, a fork, an open file, a too large file) it refuses,
so that the cell gets an ordinary exception and keeps its state. What it cannot (CPU time and memory over
all processes, the wall clock) the supervisor watches.
"""

from __future__ import annotations

import errno
import resource
from typing import Any

DEFAULTS: dict[str, float] = {
    "cpu_seconds": 30.0,
    "memory_bytes": 1 << 30,
    "wall_seconds": 120.0,
    "output_bytes": 256 << 10,
    "kept_output_bytes": 16 << 20,
    "file_bytes": 16 << 20,
    "export_files": 50,
    "processes": 256,
    "open_files": 1024,
    "disk_bytes": 4 << 30,
}
"""What holds when a step names no limit (an old log, a test)."""

FIELDS = {
    "cpu": "cpu_seconds",
    "memory": "memory_bytes",
    "wall": "wall_seconds",
    "processes": "processes",
    "open_files": "open_files",
    "disk": "disk_bytes",
}
"""The limit's field for each ``done.reason``."""

NAMES = {
    "cpu": ("CPULimitError", "used more CPU time than its limit of {}"),
    "memory": ("MemoryLimitError", "used more memory than its limit of {}"),
    "wall": ("WallClockLimitError", "ran longer than its wall-clock limit of {}"),
    "processes": ("ProcessLimitError", "started more processes and threads than its limit of {}"),
    "open_files": ("OpenFilesLimitError", "opened more files than its limit of {}"),
    "disk": ("DiskLimitError", "wrote more than its limit of {}"),
}

UNLIMITED = 1 << 62
"""Values from here on mean no limit."""

HEADROOM = 16
"""Descriptors above the cell's limit that stay ours: for large frames and for saving."""


class LimitReached(BaseException):
    """A limit ends the cell. Not an `Exception`, so that ``except Exception`` does not hide it."""

    reason = ""


CLASSES: dict[str, type[LimitReached]] = {
    reason: type(name, (LimitReached,), {"__module__": "dagger_kernel", "reason": reason})
    for reason, (name, _text) in NAMES.items()
}


def complete(limits: dict[str, Any] | None) -> dict[str, float]:
    """Return the limits with defaults where the step names none."""
    known = {name: value for name, value in (limits or {}).items() if name in DEFAULTS}
    return DEFAULTS | known


def amount(field: str, value: float) -> str:
    """Say a limit's value for people: ``30 s``, ``1 GiB``, ``256``."""
    if field.endswith("_seconds"):
        return f"{value:g} s"
    if not field.endswith("_bytes"):
        return f"{value:g}"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:g} bytes"


def describe(reason: str, limits: dict[str, float]) -> str:
    """Say which limit struck, its value and the setting that raises it."""
    field = FIELDS[reason]
    text = NAMES[reason][1].format(amount(field, limits[field]))
    return f"the cell {text}; DAGGER_KERNEL_{field.upper()} raises it"


def hint(error: BaseException | None, limits: dict[str, float]) -> tuple[str, str]:
    """Return reason and words when an ordinary exception comes from one of our limits.

    Returns
    -------
    tuple of str
        ``("", "")`` when no limit is behind it.
    """
    reason = ""
    if isinstance(error, MemoryError):
        reason = "memory"
    elif isinstance(error, OSError):
        reason = {errno.EMFILE: "open_files", errno.EFBIG: "disk", errno.ENOMEM: "memory"}.get(
            error.errno or 0, ""
        )
        if isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN:
            reason = "processes" if "emporarily unavailable" in str(error) else ""
    elif isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        reason = "processes"
    if not reason:
        return "", ""
    field = FIELDS[reason]
    value = amount(field, limits[field])
    return reason, (
        f"This cell's limit is {value} ({field}); DAGGER_KERNEL_{field.upper()} raises it. "
        "Variables and files up to here are kept."
    )


def enforce(limits: dict[str, float], *, own_pids: bool) -> None:
    """Set the resource limits of this process and all it will start.

    Parameters
    ----------
    limits
        Complete limits of the step.
    own_pids
        Whether this user's processes are all ours (a user namespace of our own): then the
        kernel's count of processes is the right one, else only a stop for fork bombs.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    _soft(resource.RLIMIT_CORE, 0, 0)
    # The supervisor watches CPU time of all processes; this stops one that outruns it.
    _soft(resource.RLIMIT_CPU, used + limits["cpu_seconds"] + 5, used + limits["cpu_seconds"] + 60)
    _soft(resource.RLIMIT_FSIZE, limits["disk_bytes"])
    _soft(resource.RLIMIT_NOFILE, limits["open_files"], limits["open_files"] + HEADROOM)
    processes = limits["processes"]
    _soft(resource.RLIMIT_NPROC, processes + 8 if own_pids else max(1024, 4 * processes))
    _soft(resource.RLIMIT_DATA, mapped_data() + limits["memory_bytes"])


def mapped_data() -> int:
    """Return what counts against ``RLIMIT_DATA`` now, in bytes."""
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmData:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def allow_data(extra: int) -> None:
    """Raise the memory limit of this process by memory that is not the cell's.

    Used for what the saved state maps into memory and for the stacks of threads.
    """
    soft, _hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft != resource.RLIM_INFINITY:
        _soft(resource.RLIMIT_DATA, soft + extra)


def relax() -> None:
    """Give the saving of state more memory, descriptors and CPU time than the cell had."""
    for kind in (resource.RLIMIT_DATA, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU):
        _soft(kind, resource.getrlimit(kind)[1])


def _soft(kind: int, value: float, ceiling: float | None = None) -> None:
    """Set a soft limit, and the hard limit too if a ceiling is given; never above the present hard one."""
    hard = resource.getrlimit(kind)[1]
    top = hard

    def under(wanted: float) -> int:
        whole = resource.RLIM_INFINITY if wanted >= UNLIMITED or wanted < 0 else int(wanted)
        if hard == resource.RLIM_INFINITY:
            return whole
        return hard if whole == resource.RLIM_INFINITY else min(whole, hard)

    if ceiling is not None:
        top = under(ceiling)
    try:
        resource.setrlimit(kind, (under(value), top))
    except (ValueError, OSError):
        pass  # a container with odd hard limits: the supervisor's watch remains

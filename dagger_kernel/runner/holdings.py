"""What processes hold that neither a directory nor an address space shows: memory files, segments, deleted files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from . import proc

SEGMENTS = "/proc/sysvipc/shm"


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a look found, each thing once however many processes share it.

    Attributes
    ----------
    memory
        Bytes in memory files (``memfd_create``) and System V segments. They belong to no address space until they
        are mapped.
    disk
        Bytes of deleted files that are open still.
    hidden
        Whether a process lets nobody look at its descriptors: it asked for that, or its program cannot be read.
    """

    memory: int = 0
    disk: int = 0
    hidden: bool = False


def holdings(pids: Iterable[int]) -> Holdings:
    """Look at the descriptors of processes."""
    memory: dict[tuple[int, int], int] = {}
    disk: dict[tuple[int, int], int] = {}
    hidden = False
    for pid in pids:
        try:
            for link, status in _deleted(pid):
                if stat.S_ISREG(status.st_mode):
                    kind = memory if link.startswith("/memfd:") else disk
                    kind[status.st_dev, status.st_ino] = status.st_blocks * 512
        except PermissionError:
            found = proc.read(pid)
            hidden = hidden or (found is not None and found.state not in "ZX")
        except OSError:
            continue  # it has ended meanwhile
    return Holdings(sum(memory.values()) + segments(), sum(disk.values()), hidden)


def _deleted(pid: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the descriptors that lead to no name; each thread may have a table of its own."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{thread}/fd"
        for name in os.listdir(folder):
            try:
                link = os.readlink(f"{folder}/{name}")
                if link.endswith(" (deleted)"):
                    yield link, os.stat(f"{folder}/{name}")
            except FileNotFoundError:
                continue  # closed meanwhile


def segments() -> int:
    """Return the bytes in System V shared memory, in memory or swapped out."""
    try:
        with open(SEGMENTS, "rb") as stream:
            next(stream)
            return sum(int(rss) + int(swap) for *_, rss, swap in map(bytes.split, stream))
    except (OSError, StopIteration, ValueError):
        return 0


@dataclass(frozen=True, slots=True)
class Machine:
    """What all processes of the machine hold together, in bytes: it bounds what a hidden one may have taken.

    Attributes
    ----------
    shared
        Shared memory: memory files, segments and what is in memory file systems.
    used
        Space used on the file system of a directory.
    """

    shared: int
    used: int

    @classmethod
    def now(cls, directory: str = ".") -> Machine:
        """Take the figures."""
        shared = used = 0
        try:
            with open("/proc/meminfo", "rb") as stream:
                line = next(line for line in stream if line.startswith(b"Shmem:"))
            shared = int(line.split()[1]) * 1024
            space = os.statvfs(directory)
            used = (space.f_blocks - space.f_bfree) * space.f_frsize
        except (OSError, StopIteration, ValueError):
            pass  # then nothing bounds it
        return cls(shared, used)

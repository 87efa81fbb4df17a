"""Memory of all processes of a cell, bounded by cgroup v2 where this process may make cgroups.

It may where an ancestor of its own cgroup is writable and gives children the memory controller: root may, and
users under systemd (``user@.service`` is delegated to them). Elsewhere the runner's limits and watch are all there is.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import subprocess
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
PREFIX = "dagger-kernel"
FACTOR = 2
"""The runner ends a cell at its limit, ten looks a second; saving its variables may take twice the limit. Here
is the wall for what is faster than the looks."""
SLACK = 64 << 20


class Cgroup:
    """One room's. ``descriptors`` (``cgroup.procs``, ``memory.events``) go to the room, which enters by the first.

    Parameters
    ----------
    path
        Where to make it; None: there is none, and nothing is done.

    Raises
    ------
    OSError
        It cannot be made.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.descriptors: list[int] = []
        if path is None:
            return
        path.mkdir()
        try:
            for name, flags in (("cgroup.procs", os.O_WRONLY), ("memory.events", os.O_RDONLY)):
                self.descriptors.append(os.open(path / name, flags | os.O_CLOEXEC))
        except OSError:
            self.remove()
            raise

    def limit(self, memory_bytes: int) -> None:
        """Bound what the room's processes may have together; a cgroup that refuses bounds nothing."""
        if self._path is None:
            return
        most = FACTOR * memory_bytes + SLACK
        for name, value in (("memory.swap.max", "0"), ("memory.max", str(min(most, 1 << 60)))):
            with contextlib.suppress(OSError):
                (self._path / name).write_text(value, "ascii")

    def hand_over(self) -> None:
        """Close our ends: the room has its own."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []

    def remove(self) -> None:
        """Remove it once its processes have ended; what cannot be removed now, a later kernel removes."""
        self.hand_over()
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.rmdir()


class Cgroups:
    """Makes cgroups below one directory; None: there is none."""

    def __init__(self, parent: Path | None = None) -> None:
        self.parent = parent
        self._numbers = itertools.count(1)

    @classmethod
    def find(cls, mount: Path = MOUNT, own: Path = OWN) -> Cgroups:
        """Return where rooms can have cgroups. Tries it, with a process of its own."""
        try:
            lines = own.read_text("ascii").splitlines()
        except OSError:
            return cls()
        place = next((line[3:] for line in lines if line.startswith("0::/")), "/..")
        if ".." in place.split("/"):
            return cls()  # version 1, or outside of what we see
        directory = mount / place.lstrip("/")
        for parent in (directory, *directory.parents):
            if _gives_memory(parent):
                _sweep(parent)
                found = cls(parent)
                if found._works():
                    return found
            if parent == mount:
                break
        return cls()

    def make(self) -> Cgroup:
        """Make a cgroup; one that does nothing where it cannot be made."""
        if self.parent is None:
            return Cgroup()
        try:
            return Cgroup(self.parent / f"{PREFIX}-{os.getpid()}-{next(self._numbers)}")
        except OSError:
            return Cgroup()

    def _works(self) -> bool:
        """Whether a process can be moved: that takes rights on both ends and what lies above."""
        cgroup = self.make()
        if not cgroup.descriptors:
            return False
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            try:
                os.write(cgroup.descriptors[0], str(process.pid).encode("ascii"))
            except OSError:
                return False
            finally:
                process.kill()
                process.wait()
                cgroup.remove()
        return True


@functools.cache
def here() -> Cgroups:
    """Return this process's: looked for once, and numbered through for all engines in it."""
    return Cgroups.find()


def _gives_memory(directory: Path) -> bool:
    try:
        given = (directory / "cgroup.subtree_control").read_text("ascii").split()
    except OSError:
        return False
    return "memory" in given and os.access(directory, os.W_OK)


def _sweep(parent: Path) -> None:
    """Remove what kernels left that were killed."""
    for path in parent.glob(f"{PREFIX}-*-*"):
        pid = path.name.split("-")[-2]
        if not os.path.exists(f"/proc/{pid}"):
            with contextlib.suppress(OSError):
                path.rmdir()

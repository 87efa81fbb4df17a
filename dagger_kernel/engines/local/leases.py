"""What is in use: leases that end with the process that holds them.

A lease is a locked file beside what it is for, and names it. Taking one and collecting what nobody holds
exclude each other by the gate, which is held for microseconds.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

PREFIX = ".lease-"
GATE = ".gate"


class Leases:
    """Leases below one directory, for several processes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._held: dict[str, int] = {}

    @contextlib.contextmanager
    def gate(self, *, collecting: bool = False) -> Iterator[None]:
        """Keep collectors out; ``collecting``: keep out everybody who takes a lease.

        Raises
        ------
        OSError
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            gate = os.open(self._root / GATE, flags, 0o600)
        except FileNotFoundError:
            self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
            gate = os.open(self._root / GATE, flags, 0o600)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX if collecting else fcntl.LOCK_SH)
            yield
        finally:
            os.close(gate)

    def take(self, name: str, uses: Iterable[str]) -> None:
        """Say under a name of one's own that some names are in use. Within the gate.

        Raises
        ------
        OSError
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        lease = os.open(self._path(name), flags, 0o600)
        try:
            fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(lease, json.dumps(list(uses)).encode("ascii"))
        except BaseException:
            self._path(name).unlink(missing_ok=True)
            os.close(lease)
            raise
        self._held[name] = lease

    def end(self, name: str) -> None:
        """Give a lease up; nothing if it is not held."""
        lease = self._held.pop(name, None)
        if lease is not None:
            with contextlib.suppress(OSError):
                self._path(name).unlink()
            os.close(lease)

    def known(self) -> set[str]:
        """Return the names of all leases, held or left by a dead process."""
        return {n.removeprefix(PREFIX) for n in os.listdir(self._root) if n.startswith(PREFIX)}

    def living(self) -> dict[str, set[str]]:
        """Return what each lease that is held uses; those of dead processes are removed. Within the gate."""
        found = {}
        for name in self.known():
            uses = self._read(self._path(name))
            if uses is not None:
                found[name] = uses
        return found

    def _read(self, path: Path) -> set[str] | None:
        try:
            lease = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None  # just ended
        try:
            try:
                fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with os.fdopen(os.dup(lease), "rb") as file:
                    return set(json.loads(file.read()))
            path.unlink(missing_ok=True)
            return None
        except (OSError, ValueError):
            return None
        finally:
            os.close(lease)

    def _path(self, name: str) -> Path:
        return self._root / (PREFIX + name)

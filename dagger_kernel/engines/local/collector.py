"""Garbage of the local engine: layers by last use, bases nobody stands on, what was altered on the disk."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from .bases import Bases
from .layer import RECORD, SETTLED
from .layers import LayerStore
from .seals import Seal
from .trees import remove, usage

GRACE_SECONDS = 60.0
"""A layer used so recently may be the ground of a room that is about to be opened."""


@dataclass(frozen=True, slots=True)
class Freed:
    """What was removed: a number, and bytes on the disk."""

    count: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Record:
    name: str
    key: str
    lowers: tuple[str, ...]
    used: float
    settled: bool


class LayerCollector:
    """Collects a store's layers. Safe beside kernels and other collectors."""

    def __init__(self, store: LayerStore) -> None:
        self._store = store

    def size(self) -> int:
        """Return the bytes that the seals of all layers tell; what has none is not walked for it."""
        seals = [Seal.read(self._store.root / name / SETTLED) for name in self._names()]
        return sum(seal.size for seal in seals if seal)

    def collect(self, keep_bytes: int = 0) -> Freed:
        """Remove the layers that were not used for the longest time, until so many bytes remain.

        What is in use, or was a moment ago, stays whatever its size. The log brings the rest back.
        """
        if not self._store.root.is_dir():
            return Freed()
        self._store.sweep()
        sizes = {name: self._size(name) for name in self._names()} if keep_bytes else {}
        with self._store.leases.gate(collecting=True):
            kept = self._kept(keep_bytes, sizes)
            doomed = [self._store.doom(name) for name in self._store.names() if name not in kept]
        return _remove(doomed)

    def damaged(self) -> list[str]:
        """Remove the layers that are not as they were made; return a sentence for each. Those in use stay.

        Layers that were not settled yet (their kernel runs, or was killed) have no seal to go by.
        """
        found = {}
        for name in self._names():
            seal = Seal.read(self._store.root / name / SETTLED)
            if seal is None or Seal.of(self._store.root / name / "fs") == seal:
                continue
            found[name] = f"Layer {name} was altered on the disk"
        for record in self._records():
            if record.name in found:
                continue
            if any(name in found for name in record.lowers):
                found[record.name] = f"Layer {record.name} stands on one that was altered"
            elif self._store.get(record.key) is None and record.settled:
                found[record.name] = f"Layer {record.name} stands on layers that are gone"
        with self._store.leases.gate(collecting=True):
            used = self._store.used()
            doomed = [self._store.doom(name) for name in found if name not in used]
        for path in doomed:
            remove(path)
        in_use = "; a cell or a waiting room uses it, so it stays: check again when its kernel has ended."
        gone = "; it was removed: the next cell of its sandbox replays the step."
        return [text + (in_use if name in used else gone) for name, text in found.items()]

    def _kept(self, most: int, sizes: dict[str, int]) -> set[str]:
        kept = self._store.used()
        total, recently = sum(sizes.get(name, 0) for name in kept), time.time() - GRACE_SECONDS
        for record in sorted(self._records(), key=lambda record: record.used, reverse=True):
            needed = set(record.lowers) - kept
            cost = sum(sizes.get(name, 0) for name in needed)
            # A clock that was set back makes uses of the future: they count as recent.
            if record.used > recently or (most and total + cost <= most):
                kept |= needed
                total += cost
        return kept

    def _names(self) -> list[str]:
        return self._store.names() if self._store.root.is_dir() else []

    def _size(self, name: str) -> int:
        seal = Seal.read(self._store.root / name / SETTLED)
        return seal.size if seal else usage(self._store.root / name)

    def _records(self) -> list[_Record]:
        found = []
        for name in self._names():
            path = self._store.root / name / RECORD
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                data = json.loads(path.read_bytes())
                lowers, key = tuple(map(str, data["lowers"])), str(data["key"])
                settled = (path.parent / SETTLED).exists()
                found.append(_Record(name, key, lowers, os.stat(path).st_mtime, settled))
        return found


def collect_bases(bases: Bases) -> Freed:
    """Remove bases and copies of the runner that no process uses; they can be built again."""
    if bases.root.is_symlink() or not bases.root.is_dir():
        return Freed()  # what a link leads to is not ours
    with bases.leases.gate(collecting=True):
        used = set().union(*bases.leases.living().values())
        doomed = []
        for name in os.listdir(bases.root):
            if name not in used and not name.startswith("."):
                target = bases.root / f".doomed-{name}-{os.getpid()}"
                with contextlib.suppress(OSError):
                    os.rename(bases.root / name, target)
                    doomed.append(target)
    return _remove(doomed)


def _remove(doomed: list[Path]) -> Freed:
    size = 0
    for path in doomed:
        size += usage(path)
        remove(path)
    return Freed(len(doomed), size)

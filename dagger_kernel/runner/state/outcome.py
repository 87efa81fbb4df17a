"""What a save did: the new manifest's names, how they differ from those before, what is lost."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .lost import LostObject, lost_details
from .manifest import Manifest, NameEntry
from .pickler import type_label

if TYPE_CHECKING:
    from .loader import Loader

Loss = tuple[str, str, int]
"""Type, reason and cell of an object which was given up."""


@dataclass
class Outcome:
    """What a save did.

    Parameters
    ----------
    loader : Loader
        The saved side before.
    manifest : Manifest
        What is saved now; its names are entered here.
    """

    loader: Loader
    manifest: Manifest
    saved: list[str] = field(default_factory=list)
    unchanged: int = 0
    deleted: list[str] = field(default_factory=list)
    lost: list[dict[str, Any]] = field(default_factory=list)

    @property
    def written(self) -> list[str]:
        """Variables which were saved, without the hidden ones."""
        return [name for name in self.saved if not name.startswith("_")]

    def report(self) -> dict[str, Any]:
        """Give what is told to the user, as JSON."""
        return {
            "saved": self.written,
            "unchanged": self.unchanged,
            "lost": self.lost,
            "deleted": sorted(self.deleted),
        }

    def carry_over(self, bound: Container[str], gone: set[str], dumped: Container[str]) -> None:
        """Enter the names which are saved and not in memory, as far as there is a value.

        Parameters
        ----------
        bound : container of str
            Names which are in memory.
        gone : set of str
            Names which were deleted.
        dumped : container of str
            Nodes which are saved anew.
        """
        for name, entry in self.loader.manifest.names.items():
            if name in bound:
                continue
            kept = self.loader.component_of.get(entry.key) in self.manifest.components
            if name not in gone and (kept or entry.key in dumped):
                self.manifest.names[name] = entry
            else:
                self.deleted.append(name)

    def bind(self, keys: dict[str, str], values: dict[str, Any], cell: int) -> None:
        """Enter the names which are in memory, with the cell that made each value.

        Parameters
        ----------
        keys, values : dict
            Node and value of each name.
        cell : int
            The cell which made what is new.
        """
        old, components = self.loader.manifest, self.manifest.components
        owners = self.manifest.owners()
        for name, key in keys.items():
            value, made = values[name], cell
            cid = owners.get(key)
            before = old.names.get(name)
            if before is not None and before.key == key:
                unchanged = cid in old.components
                if unchanged or self.loader.value_ids.get(key) == id(value):
                    made = before.cell
            if type(value) is LostObject:
                _, label, _, made = lost_details(value)
            else:
                label = type_label(type(value))
            size = components[cid].size if cid is not None else 0
            self.manifest.names[name] = NameEntry(key, made, label, size)
        self.manifest.names = dict(sorted(self.manifest.names.items()))

    def compare(self) -> None:
        """Tell the variables which were saved from those which are as they were."""
        old, components = self.loader.manifest, self.manifest.components
        kept = components.keys() & old.components.keys()
        owners = self.manifest.owners()
        new = {key for cid in components.keys() - kept for key in components[cid].keys}
        for name, entry in self.manifest.names.items():
            before = old.names.get(name)
            if before is not None and owners.get(entry.key) in kept:
                self.unchanged += 1
            if before is None or before.key != entry.key or entry.key in new:
                self.saved.append(name)

    def list_lost(
        self, bound: Iterable[str], given_up: Iterable[tuple[str, Iterable[Loss]]]
    ) -> None:
        """List what is lost: known before for untouched variables, or found now.

        Parameters
        ----------
        bound : iterable of str
            Names which are in memory.
        given_up : iterable of tuple
            What the dumps of values in memory lost, by the name it is reported under.
        """
        old = self.loader.manifest
        known = {(entry["name"], entry["type"], entry["reason"]) for entry in old.lost}
        untouched = self.manifest.names.keys() - set(bound)

        def report(name: str, kind: str, reason: str, cell: int) -> None:
            new = (name, kind, reason) not in known
            self.lost.append(
                {"name": name, "type": kind, "reason": reason, "cell": cell, "new": new}
            )

        unreadable = {name: why for name, why in self._unreadable() if name in untouched}
        for name, reason in unreadable.items():
            report(name, old.names[name].type_name, reason, old.names[name].cell)
        for entry in old.lost:
            if entry["name"] in untouched - unreadable.keys():
                self.lost.append({**entry, "new": False})
        for name, losses in given_up:
            for kind, reason, cell in losses:
                report(name, kind, reason, cell)
        self.manifest.lost = [{**entry, "new": False} for entry in self.lost]

    def _unreadable(self) -> Iterator[tuple[str, str]]:
        """Names whose saved bytes could not be read this time, and why."""
        old = self.loader.manifest
        for cid, reason in self.loader.failed.items():
            keys = set(old.components[cid].keys)
            for name, entry in old.names.items():
                if entry.key in keys:
                    yield name, reason

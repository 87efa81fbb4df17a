"""Saves what may have changed, and nothing else.

A component which was not loaded cannot have changed: a new process can only
change what is in its memory. What was loaded is dumped again; where pickle and
buffers come out as before, the old entry stays and nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .components import ComponentWriter
from .dumping import Dump, Dumper
from .graph import NAMED
from .grouping import group_nodes
from .keys import assign_keys
from .manifest import Component, Manifest
from .outcome import Loss, Outcome
from .trial import try_loading, untried

if TYPE_CHECKING:
    from .loader import Loader
    from .store import BlobStore
    from .withheld import Withheld


class Saver:
    """One save of a namespace.

    Parameters
    ----------
    loader : Loader
        The saved side, with what was loaded.
    store : BlobStore
        Where new bytes go.
    exposed : bool
        Whether the user may hold the dictionary of globals itself.
    withheld : Withheld
        What must not be saved.
    """

    def __init__(
        self, loader: Loader, store: BlobStore, *, exposed: bool, withheld: Withheld
    ) -> None:
        self._loader = loader
        self._old = loader.manifest
        self._registry = loader.registry
        self._writer = ComponentWriter(loader, store)
        self._dumper = Dumper(loader.registry, exposed=exposed, withheld=withheld)
        self._dumps: dict[str, Dump] = {}

    def save(
        self, names: dict[str, Any], ambient: dict[str, Any], cell: int, gone: set[str]
    ) -> Outcome:
        """Save the bindings `names` and the library state `ambient`.

        Parameters
        ----------
        names : dict
            Every binding which is in memory.
        ambient : dict
            Values of ``a:`` nodes.
        cell : int
            The execution count, for new variables.
        gone : set of str
            Saved names which were deleted.
        """
        loader, old = self._loader, self._old
        # Saving may run code of the user's, and that may look a variable up. What is loaded from
        # here on is none of `names`: it stays as it is saved.
        components = {
            cid: component
            for cid, component in old.components.items()
            if cid not in loader.loaded or cid in loader.failed
        }
        keys = self._collect(names, ambient)
        self._dump_all()
        verified = self._try_all()
        components.update(map(self._component, group_nodes(self._dumps)))
        manifest = Manifest(
            sequence=old.sequence + 1,
            cell=cell,
            python=f"{sys.version_info.major}.{sys.version_info.minor}",
            components=components,
            verified=sorted(verified | set(old.verified)),
        )
        outcome = Outcome(loader, manifest)
        outcome.carry_over(keys, gone, self._dumps)
        outcome.bind(keys, names, cell)
        self._sweep(manifest, ambient)
        self._writer.finish(manifest.components.values())
        outcome.compare()
        outcome.list_lost(keys, self._given_up(keys))
        return outcome

    # --- which nodes ------------------------------------------------------------------------

    def _collect(self, names: dict[str, Any], ambient: dict[str, Any]) -> dict[str, str]:
        """Find the nodes which are in memory; give the keys of the bindings."""
        registry, values = self._registry, self._dumper.values
        registry.bound_functions = _functions(names.values())
        keys = assign_keys(names, self._loader)
        for name, key in keys.items():
            values.setdefault(key, names[name])
            self._dumper.labels.setdefault(key, name)
        values.update(ambient)
        registry.lost_classes.clear()
        registry.reducers.clear()  # which classes are the user's may have changed
        for name in registry.managed_modules:
            module = sys.modules.get(name)
            if module is not None:
                registry.register(f"m:{name}", module)
                values[f"m:{name}"] = module
                registry.bound_functions |= _functions(vars(module).values())
        for key, value in registry.objects.items():
            loaded = self._loader.component_of.get(key) in self._loader.loaded
            if loaded and not key.startswith("m:"):
                values.setdefault(key, value)
        return keys

    # --- dumping ----------------------------------------------------------------------------

    def _dump_all(self) -> None:
        """Dump every candidate alone, and every node found on the way."""
        values = self._dumper.values
        waiting = sorted(values)
        while waiting:
            for key in waiting:
                self._dumps[key] = self._dumper.alone(key)
            waiting = []
            for key in self._registry.fresh:
                if key not in self._dumps:
                    values[key] = self._registry.objects[key]
                    waiting.append(key)
            self._registry.fresh.clear()
            waiting = waiting or self._on_lost_classes()

    def _on_lost_classes(self) -> list[str]:
        """Nodes which refer to a class that turned out to be lost: they are dumped without it."""
        numbers, registry = self._registry.lost_classes, self._registry
        lost = {key for number in numbers if (key := registry.keys.get(number)) is not None}
        return [
            key
            for key, dump in self._dumps.items()
            if key not in lost and not lost.isdisjoint(dump.pickler.references)
        ]

    def _try_all(self) -> set[str]:
        """Load what has never been loaded before; give the names of types which do load."""
        tried = set(self._old.verified)
        new = {key: untried(dump, tried) for key, dump in self._dumps.items()}
        candidates = {key: self._dumps[key] for key, types in new.items() if types}
        if not candidates:
            return set()
        failures = try_loading(candidates, self._loader)
        good = {name for key in candidates if key not in failures for name in new[key]}
        for key, reason in failures.items():
            # Only objects of the types which may be at fault are given up, at first.
            self._registry.refused.update(dict.fromkeys(new[key] - good, reason))
        for key in failures:
            self._dumps[key] = self._dumper.alone(key)
        again = {key: self._dumps[key] for key in failures}
        for key, reason in try_loading(again, self._loader).items() if again else ():
            if key.startswith(("v:", "a:")):
                self._dumps[key] = self._dumper.lost(key, reason)
        return {name for name in good if "." in name}

    # --- components -------------------------------------------------------------------------

    def _component(self, group: list[str]) -> tuple[str, Component]:
        dump = self._dumps[group[0]] if len(group) == 1 else self._dumper.together(group)
        return self._writer.write(dump)

    def _sweep(self, manifest: Manifest, ambient: dict[str, Any]) -> None:
        """Drop components which no name leads to any more."""
        owners = manifest.owners()
        waiting = [entry.key for entry in manifest.names.values()]
        waiting += [key for key in owners if key in ambient or key.startswith(("m:", "a:"))]
        reached: set[str] = set()
        while waiting:
            cid = owners.get(waiting.pop())
            if cid is not None and cid not in reached:
                reached.add(cid)
                waiting += manifest.components[cid].references
        manifest.components = {
            cid: component
            for cid, component in sorted(manifest.components.items())
            if cid in reached
        }

    def _given_up(self, keys: dict[str, str]) -> Iterator[tuple[str, Iterable[Loss]]]:
        """What was lost of each dump, by the names of its value."""
        names: dict[str, list[str]] = {}
        for name, key in keys.items():
            names.setdefault(key, []).append(name)
        for key, dump in self._dumps.items():
            if losses := dict.fromkeys(dump.pickler.lost):
                for name in names.get(key) or [self._dumper.label(key)]:
                    yield name, losses


def _functions(values: Iterable[Any]) -> set[int]:
    """Ids of the functions and type variables among values."""
    return {id(value) for value in values if type(value) in NAMED}

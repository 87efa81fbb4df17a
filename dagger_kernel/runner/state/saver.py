"""Saves what may have changed, and nothing else.

A component which was not loaded cannot have changed: a new process can only
change what is in its memory. What was loaded is dumped again; where pickle and
buffers come out as before, the old entry stays and nothing is written.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .dumping import Dump, Dumper
from .graph import NAMED, Groups, cycles, is_linkable
from .lost import LostObject, lost_details
from .manifest import Buffer, Component, Manifest, NameEntry
from .pickler import type_label
from .same import LIMIT, same_content
from .store import digest
from .trial import try_loading, untried

if TYPE_CHECKING:
    from .loader import Loader
    from .store import BlobStore
    from .withheld import Withheld

_SINGLETONS = (type(None), bool, type(...), type(NotImplemented))


@dataclass
class Outcome:
    """What a save did."""

    manifest: Manifest
    saved: list[str] = field(default_factory=list)
    unchanged: int = 0
    deleted: list[str] = field(default_factory=list)
    lost: list[dict[str, Any]] = field(default_factory=list)


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
        self._store = store
        self._dumper = Dumper(loader.registry, exposed=exposed, withheld=withheld)
        self._dumps: dict[str, Dump] = {}
        self._placed: dict[tuple[int, int], Buffer] = {}
        self._cids: tuple[object, dict[str, str]] = (None, {})

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
        self._registry.bound_functions = {
            id(value) for value in names.values() if type(value) in NAMED
        }
        keys = self._assign_keys(names)
        for key, value in ambient.items():
            self._dumper.values[key] = value
        self._registry.reducers.clear()  # which classes are the user's may have changed
        for name in self._registry.managed_modules:
            module = sys.modules.get(name)
            if module is not None:
                self._registry.register(f"m:{name}", module)
                self._dumper.values[f"m:{name}"] = module
                self._registry.bound_functions |= {
                    id(value) for value in vars(module).values() if type(value) in NAMED
                }
        for key, value in self._registry.objects.items():
            if loader.component_of.get(key) in loader.loaded and not key.startswith("m:"):
                self._dumper.values.setdefault(key, value)
        self._dump_all()
        verified = self._try_all()
        groups = self._group()
        components: dict[str, Component] = {
            cid: component
            for cid, component in old.components.items()
            if cid not in loader.loaded or cid in loader.failed
        }
        before = set(components)
        for group in groups:
            cid, component = self._component(group)
            components[cid] = component
        manifest = Manifest(
            sequence=old.sequence + 1,
            cell=cell,
            python=f"{sys.version_info.major}.{sys.version_info.minor}",
            components=components,
            verified=sorted(verified | set(old.verified)),
        )
        outcome = Outcome(manifest)
        self._names(outcome, keys, names, cell, gone)
        self._sweep(manifest, ambient)
        self._name_pack(manifest)
        kept = set(manifest.components) & set(old.components)
        outcome.unchanged = sum(
            1
            for name, entry in manifest.names.items()
            if name in old.names and self._cid_of(manifest, entry.key) in kept
        )
        new = {k for c in set(manifest.components) - kept for k in manifest.components[c].keys}
        outcome.saved = sorted(
            name
            for name, entry in manifest.names.items()
            if entry.key in new or name not in old.names or old.names[name].key != entry.key
        )
        del before
        self._report_lost(outcome, keys)
        return outcome

    # --- which nodes ------------------------------------------------------------------------

    def _assign_keys(self, names: dict[str, Any]) -> dict[str, str]:
        """Give each binding a key; names bound to one object share one."""
        keys: dict[str, str] = {}
        by_object: dict[int, str] = {}
        # A name bound anew must not take the key of a value still saved under it.
        used = {
            key for key, cid in self._loader.component_of.items() if cid not in self._loader.loaded
        }
        for name in sorted(names):
            value = names[name]
            known = self._registry.key_of(value)
            if known is None and id(value) in self._registry.bound_functions:
                by_name = self._by_name_only(value)
                known = None if by_name else self._registry.function_key(value)
            if known is None and issubclass(type(value), type):
                known = None if self._by_name_only(value) else self._registry.class_key(value)
            if known is not None and not known.startswith("m:"):
                keys[name] = known
                self._dumper.values.setdefault(known, value)
                self._dumper.labels.setdefault(known, name)
                continue
            single = type(value) in _SINGLETONS or (type(value) is int and -6 < value < 257)
            found = None if single else by_object.get(id(value))
            if found is None:
                entry = self._old.names.get(name)
                found = f"v:{name}"
                if (
                    entry is not None
                    and entry.key.startswith("v:")
                    and self._loader.value_ids.get(entry.key) == id(value)
                    and entry.key not in used
                ):
                    found = entry.key
                number = 0
                while found in used:
                    number += 1
                    found = f"v:{name}~{number}"
                used.add(found)
                if not single:
                    by_object[id(value)] = found
                self._dumper.values[found] = value
                self._dumper.labels[found] = name
            keys[name] = found
        return keys

    def _by_name_only(self, value: Any) -> bool:
        from .reducers.functions import importable_name

        return importable_name(value, self._registry) is not None or (
            issubclass(type(value), type) and value.__module__ == "builtins"
        )

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

    # --- grouping ---------------------------------------------------------------------------

    def _group(self) -> list[list[str]]:
        """Sets of nodes to save together: linked by sharing, or referring to each other."""
        groups = Groups()
        for key in self._dumps:
            groups.find(key)
        first: dict[int, str] = {}
        sharers: dict[int, list[str]] = {}
        for key, dump in sorted(self._dumps.items(), key=lambda item: len(item[1].reached)):
            # Set operations run in C: only what two dumps both reached is looked at one by one.
            common = first.keys() & dump.reached.keys()
            for number in common:
                sharers.setdefault(number, [first[number]]).append(key)
            first.update(dict.fromkeys(dump.reached.keys() - common, key))
        for number, everyone in sharers.items():
            keys = [key for key in everyone if number not in self._dumps[key].exempt]
            if len(keys) < 2 or not is_linkable(type(self._dumps[keys[0]].reached[number])):
                continue
            if all(number in self._dumps[key].pickler.copy_on_write for key in keys):
                continue  # nobody writes to it in place
            for key in keys[1:]:
                groups.union(keys[0], key)
        while True:
            edges: dict[str, set[str]] = {}
            for key, dump in self._dumps.items():
                edges.setdefault(groups.find(key), set()).update(
                    groups.find(reference)
                    for reference in dump.pickler.references
                    if reference in self._dumps
                )
            rings = cycles(edges)
            if not rings:
                return groups.groups(self._dumps)
            for ring in rings:
                for member in ring[1:]:
                    groups.union(ring[0], member)

    # --- components -------------------------------------------------------------------------

    def _component(self, group: list[str]) -> tuple[str, Component]:
        dump = self._dumps[group[0]] if len(group) == 1 else self._dumper.together(group)
        pickler = dump.pickler
        mark = digest(dump.skeleton)
        old = self._old_component(group)
        buffers, same = self._buffers(dump, old)
        references = sorted(pickler.references)
        same = same and old is not None and old[1].references == references
        if old is not None and same and (old[1].digest == mark or self._is_same(old[1], dump)):
            return old
        component = Component(
            keys=group,
            skeleton=self._store.put(dump.skeleton),
            digest=mark,
            buffers=buffers,
            references=references,
            modules=sorted({m.partition(".")[0] for m in pickler.modules}),
        )
        return f"{self._old.sequence + 1}.{group[0]}", component

    def _is_same(self, old: Component, dump: Dump) -> bool:
        if max(old.skeleton[2], len(dump.skeleton)) > LIMIT:
            return False
        return same_content(self._store.read(old.skeleton), dump.skeleton)

    def _old_component(self, group: list[str]) -> tuple[str, Component] | None:
        cid = self._loader.component_of.get(group[0])
        if cid is None or cid not in self._loader.loaded:
            return None
        component = self._old.components[cid]
        return (cid, component) if component.keys == group else None

    def _buffers(self, dump: Dump, old: tuple[str, Component] | None) -> tuple[list[Buffer], bool]:
        """Store the buffers of a dump; tell whether they are the old component's."""
        before = old[1].buffers if old is not None else []
        same = len(before) == len(dump.buffers)
        found = []
        for number, item in enumerate(dump.buffers):
            view = item.raw()
            buffer = self._buffer(view)
            found.append(buffer)
            same = same and buffer is before[number]
        return found, same

    def _buffer(self, view: memoryview) -> Buffer:
        if self._loader.has_mappings:
            known = self._loader.memory.known(view)
            if known is not None:
                return self._delta(view, known)
            copied = self._loader.memory.unchanged_copy(view)
            if copied is not None:
                return copied
        from .memory import address_of

        # Two variables may hold one memory, each with its own pickle: it is hashed once.
        place = (address_of(view), view.nbytes)
        if place not in self._placed:
            self._placed[place] = Buffer(*self._store.put(view, aligned=True))
        found = self._placed[place]
        return Buffer(found.file, found.offset, found.length)

    def _delta(self, view: memoryview, known: Buffer) -> Buffer:
        """Store only the pages of a mapped buffer which were written."""
        from .memory import MAX_EXTENTS

        ranges = self._loader.memory.written(view, known)
        if not ranges:
            return known
        changed = sum(length for _, length in ranges)
        kept = [
            extent
            for extent in known.extents
            if not any(s <= extent[0] and extent[0] + extent[1] <= s + n for s, n in ranges)
        ]
        total = changed + sum(extent[1] for extent in kept)
        if total * 4 > view.nbytes or len(kept) + len(ranges) > MAX_EXTENTS:
            file, offset, length = self._store.put(view, aligned=True)
            return Buffer(file, offset, length)
        for start, length in ranges:
            file, offset, _ = self._store.put(view[start : start + length], aligned=True)
            kept.append((start, length, file, offset))
        return Buffer(known.file, known.offset, known.length, kept)

    # --- the manifest -----------------------------------------------------------------------

    def _names(
        self,
        outcome: Outcome,
        keys: dict[str, str],
        values: dict[str, Any],
        cell: int,
        gone: set[str],
    ) -> None:
        manifest, old = outcome.manifest, self._old
        for name, entry in old.names.items():
            if name in keys:
                continue
            cid = self._loader.component_of.get(entry.key)
            if name in gone:
                outcome.deleted.append(name)
            elif cid in manifest.components or entry.key in self._dumps:
                manifest.names[name] = entry
            else:
                outcome.deleted.append(name)
        for name, key in keys.items():
            value = values[name]
            before = old.names.get(name)
            made = cell
            if before is not None and before.key == key:
                unchanged = self._cid_of(manifest, key) in old.components
                if unchanged or self._loader.value_ids.get(key) == id(value):
                    made = before.cell
            if type(value) is LostObject:
                _, label, _, made = lost_details(value)
            else:
                label = type_label(type(value))
            manifest.names[name] = NameEntry(key, made, label, self._size(manifest, key))
        manifest.names = dict(sorted(manifest.names.items()))

    def _cid_of(self, manifest: Manifest, key: str) -> str | None:
        if self._cids[0] is not manifest.components:
            table = {k: c for c, component in manifest.components.items() for k in component.keys}
            self._cids = (manifest.components, table)
        return self._cids[1].get(key)

    def _size(self, manifest: Manifest, key: str) -> int:
        cid = self._cid_of(manifest, key)
        if cid is None:
            return 0
        component = manifest.components[cid]
        return component.skeleton[2] + sum(buffer.length for buffer in component.buffers)

    def _sweep(self, manifest: Manifest, ambient: dict[str, Any]) -> None:
        """Drop components which no name leads to any more."""
        table = {k: c for c, component in manifest.components.items() for k in component.keys}
        waiting = [entry.key for entry in manifest.names.values()]
        waiting += [key for key in table if key in ambient or key.startswith(("m:", "a:"))]
        reached: set[str] = set()
        while waiting:
            cid = table.get(waiting.pop())
            if cid is not None and cid not in reached:
                reached.add(cid)
                component = manifest.components[cid]
                waiting += component.references
        manifest.components = {
            cid: component
            for cid, component in sorted(manifest.components.items())
            if cid in reached
        }

    def _name_pack(self, manifest: Manifest) -> None:
        """Write the pack and put its name where slices of it were recorded."""
        pack = self._store.flush()
        for component in manifest.components.values():
            if not component.skeleton[0]:
                component.skeleton = (pack, *component.skeleton[1:])
            for buffer in component.buffers:
                buffer.file = buffer.file or pack
                buffer.extents = [(s, n, f or pack, o) for s, n, f, o in buffer.extents]

    def _report_lost(self, outcome: Outcome, keys: dict[str, str]) -> None:
        """List what is not kept: known before for untouched variables, or found now."""
        manifest = outcome.manifest
        known = {(entry["name"], entry["type"], entry["reason"]) for entry in self._old.lost}
        unreadable = set()
        for cid, reason in self._loader.failed.items():
            for name, old in self._old.names.items():
                if (
                    name in manifest.names
                    and name not in keys
                    and old.key in self._old.components[cid].keys
                ):
                    unreadable.add(name)
                    found = {
                        "name": name,
                        "type": old.type_name,
                        "reason": reason,
                        "cell": old.cell,
                    }
                    new = (name, old.type_name, reason) not in known
                    outcome.lost.append({**found, "new": new})
        for entry in self._old.lost:
            name = entry["name"]
            if name in manifest.names and name not in keys and name not in unreadable:
                outcome.lost.append({**entry, "new": False})
        by_key: dict[str, list[str]] = {}
        for name, key in keys.items():
            by_key.setdefault(key, []).append(name)
        for key, dump in self._dumps.items():
            given_up = dict.fromkeys(dump.pickler.lost)
            for name in by_key.get(key, ()) or ([self._dumper.label(key)] if given_up else []):
                for label, reason, made in given_up:
                    new = (name, label, reason) not in known
                    outcome.lost.append(
                        {"name": name, "type": label, "reason": reason, "cell": made, "new": new}
                    )
        manifest.lost = [{**entry, "new": False} for entry in outcome.lost]

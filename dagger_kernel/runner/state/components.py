"""Writes components: their pickles and buffers, as far as they are not stored already."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from .manifest import Buffer, Component
from .same import LIMIT, same_content
from .store import digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .dumping import Dump
    from .loader import Loader
    from .store import BlobStore


class ComponentWriter:
    """Writes the components of one save.

    Parameters
    ----------
    loader : Loader
        The saved side, with what was loaded.
    store : BlobStore
        Where new bytes go.
    """

    def __init__(self, loader: Loader, store: BlobStore) -> None:
        self._loader = loader
        self._old = loader.manifest
        self._store = store
        self._placed: dict[tuple[int, int], tuple[memoryview, Buffer]] = {}

    def write(self, dump: Dump) -> tuple[str, Component]:
        """Store what is new of a dump; give the component and its id, the old one if it is equal."""
        mark = digest(dump.skeleton)
        old = self._old_component(dump.keys)
        buffers, same = self._buffers(dump, old)
        references = sorted(dump.pickler.references)
        same = same and old is not None and old[1].references == references
        if old is not None and same and (old[1].digest == mark or self._is_same(old[1], dump)):
            return old
        component = Component(
            keys=dump.keys,
            skeleton=self._store.put(dump.skeleton),
            digest=mark,
            buffers=buffers,
            references=references,
            modules=sorted({m.partition(".")[0] for m in dump.pickler.modules}),
        )
        return f"{self._old.sequence + 1}.{dump.keys[0]}", component

    def finish(self, components: Iterable[Component]) -> None:
        """Write the pack and put its name where slices of it were recorded."""
        pack = self._store.flush()
        for component in components:
            if not component.skeleton[0]:
                component.skeleton = (pack, *component.skeleton[1:])
            for buffer in component.buffers:
                buffer.file = buffer.file or pack
                buffer.extents = [(s, n, f or pack, o) for s, n, f, o in buffer.extents]

    def _old_component(self, group: list[str]) -> tuple[str, Component] | None:
        cid = self._loader.component_of.get(group[0])
        if cid not in self._loader.loaded or cid in self._loader.failed:
            return None  # what could not be read cannot be compared with
        component = self._old.components[cid]
        return (cid, component) if component.keys == group else None

    def _is_same(self, old: Component, dump: Dump) -> bool:
        if max(old.skeleton[2], len(dump.skeleton)) > LIMIT:
            return False
        return same_content(self._store.read(old.skeleton), dump.skeleton)

    # --- buffers ----------------------------------------------------------------------------

    def _buffers(self, dump: Dump, old: tuple[str, Component] | None) -> tuple[list[Buffer], bool]:
        """Store the buffers of a dump; tell whether they are the old component's."""
        before = old[1].buffers if old is not None else []
        found = [self._buffer(item.raw()) for item in dump.buffers]
        same = len(before) == len(found) and all(map(operator.is_, found, before))
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

        # Two variables may hold one memory, each with its own pickle: it is hashed once. The view
        # is kept, as a copy made for one pickle only would leave its address to the next.
        place = (address_of(view), view.nbytes)
        if place not in self._placed:
            self._placed[place] = (view, Buffer(*self._store.put(view, aligned=True)))
        found = self._placed[place][1]
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
            return Buffer(*self._store.put(view, aligned=True))
        for start, length in ranges:
            file, offset, _ = self._store.put(view[start : start + length], aligned=True)
            kept.append((start, length, file, offset))
        return Buffer(known.file, known.offset, known.length, kept)

"""Dumps nodes, alone or together, and gives up on as little as possible."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import reason_of
from .lost import LostObject
from .modules import ModuleState
from .pickler import StatePickler, type_label
from .reducers.classes import ClassState
from .reducers.foreign import ByName, singletons
from .unequal import SharingPickler, holds_unequal

if TYPE_CHECKING:
    import pickle

    from .graph import Registry
    from .withheld import Withheld


@dataclass
class Dump:
    """One dump of one or more nodes."""

    keys: list[str]
    skeleton: bytes
    pickler: StatePickler
    root: Any
    reached: dict[int, Any] = field(default_factory=dict)
    """Every object written, by id."""
    exempt: set[int] = field(default_factory=set)
    """Ids of objects which may be in two dumps without linking them."""

    @property
    def buffers(self) -> list[pickle.PickleBuffer]:
        """Buffers which left the pickle, in order."""
        return self.pickler.buffers


class Dumper:
    """Dumps the nodes of one save.

    Parameters
    ----------
    registry : Registry
        Live nodes.
    exposed : bool
        Whether the user may hold the dictionary of globals itself.
    withheld : Withheld
        What must not be saved.
    """

    def __init__(self, registry: Registry, *, exposed: bool, withheld: Withheld) -> None:
        self._withheld = withheld
        self._registry = registry
        self._exposed = exposed
        registry.singletons = singletons()
        self.values: dict[str, Any] = {}
        """Values of the nodes to save, by key."""
        self.labels: dict[str, str] = {}
        """What to call a node in messages."""

    def label(self, key: str) -> str:
        """What to call a node in messages."""
        if key in self.labels:
            return self.labels[key]
        if key.startswith("a:"):
            return f"({key[2:]} settings)"
        value = self._registry.objects.get(key)
        return getattr(value, "__qualname__", None) or key.partition(":")[2]

    def alone(self, key: str) -> Dump:
        """Dump one node; where that fails as a whole, its stand-in."""
        try:
            dump = self._dump([key])
        except Exception as error:
            return self.lost(key, reason_of(error))
        secret = self._withheld.found_in(dump.skeleton, *(b.raw() for b in dump.buffers))
        if secret:
            return self.lost(key, f"it holds the secret {secret}, which is never saved")
        pickler, root = dump.pickler, dump.root
        reason = pickler.lost_classes.get(id(self.values[key]))
        if reason is not None and key.startswith("c:"):
            self._registry.lost_classes[id(self.values[key])] = reason
            return self.lost(key, reason)
        dump.exempt = pickler.by_reference | {id(value) for value in pickler.unlinked}
        dump.exempt |= {id(root), id(root[0]), id(root[1]), id(self._registry.namespace)}
        # What the pickler itself holds is no content: its attributes, and the method that C calls.
        dump.exempt |= {id(value) for value in vars(pickler).values()}
        dump.exempt |= {id(value) for value in vars(type(pickler)).values()}
        dump.reached = _reached(pickler, root)
        dump.reached.update({number: found.value for number, found in pickler.unequal.items()})
        return dump

    def together(self, keys: list[str]) -> Dump:
        """Dump linked nodes in one pickle; each could be dumped alone."""
        try:
            return self._dump(keys)
        except Exception as error:
            for key in keys:
                if key.startswith("v:"):
                    self.lost(key, reason_of(error))
            return self._dump(keys)

    def lost(self, key: str, reason: str) -> Dump:
        """Give up on a node; its stand-in is saved instead."""
        label = self.label(key)
        kind = type_label(type(self.values[key]))
        self.values[key] = LostObject(label, kind, reason, self._registry.cell)
        return self._dump([key])

    def _dump(self, keys: list[str]) -> Dump:
        root = self._root(keys)
        inline, label = frozenset(keys), self.label(keys[0])
        try:
            known = not self._registry.unequal.isdisjoint(keys)
            pickler = self._attempt(SharingPickler if known else StatePickler, inline, label, root)
            if not known and holds_unequal(pickler.sink.getvalue()):
                self._registry.unequal.update(keys)
                pickler = self._attempt(SharingPickler, inline, label, root)
        except RecursionError:
            from .deep import dump_deep

            pickler = dump_deep(self._registry, inline, label, root)
        return Dump(keys, pickler.sink.getvalue(), pickler, root)

    def _attempt(
        self, kind: type[StatePickler], inline: frozenset[str], label: str, root: Any
    ) -> StatePickler:
        pickler = kind(self._registry, inline, label)
        try:
            pickler.dump(root)
        except RecursionError:
            if not self._exposed:
                raise
        except RuntimeError:
            # A thread of the user's may have changed a container meanwhile.
            pickler = kind(self._registry, inline, label)
            pickler.dump(root)
        if self._exposed and id(self._registry.namespace) in pickler.memo.copy():
            pickler = kind(self._registry, inline, label)
            pickler.dump_namespace()
            pickler.dump(root)
        return pickler

    def _owned(self, value: Any) -> Any:
        """The value, or its name where it is a list or dictionary of the interpreter's."""
        if type(value) in (list, dict):
            place = self._registry.singletons.get(id(value))
            if place is not None:
                return ByName(*place)
        return value

    def _root(self, keys: list[str]) -> tuple[list[Any], list[Any]]:
        """What is pickled: what must be made first, then the values in order of their keys."""
        pairs = [(key, self._owned(self.values[key])) for key in keys]
        whole = [(key, value) for key, value in pairs if type(value) is not LostObject]
        classes = [value for key, value in whole if key.startswith("c:")]
        modules = [value for key, value in whole if key.startswith("m:")]
        classes.sort(key=lambda cls: (not issubclass(cls, type), len(cls.__mro__)))
        prelude: list[Any] = [*modules, *classes]
        prelude += [ClassState(cls, early=True) for cls in classes]
        prelude += [ClassState(cls, early=False) for cls in classes]
        prelude += [ModuleState(module) for module in modules]
        return (prelude, [value for _, value in pairs])


def _reached(pickler: StatePickler, root: Any) -> dict[int, Any]:
    """The objects in a pickler's memo, by id."""
    # The garbage collector's view costs a thirtieth of copying the memo.
    found = gc.get_referents(pickler)
    by_id = dict(zip(map(id, found), found, strict=True))
    if id(root) in by_id:
        return by_id
    return {number: value for number, (_, value) in pickler.memo.copy().items()}

"""The pickler: C speed for plain data, own reducers for what pickle gets wrong.

``reducer_override`` is called for every object which is not a plain builtin
container or atom. It looks the type up in a table; a reducer gives a pickle
recipe, or raises :class:`CannotPersistError`, and then only that object is
replaced by a stand-in, not the variable around it.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import TYPE_CHECKING, Any

from .dispatch import reduces, resolve_reducer
from .errors import CannotPersistError, reason_of
from .lost import LostObject, lost_details
from .patched import find_importable
from .rebuild import current_loader, rebuilder

if TYPE_CHECKING:
    from .graph import Registry

OUT_OF_BAND = 64 << 10
"""Buffers of this many bytes leave the pickle; thousands of small files would cost more."""


def type_label(kind: type) -> str:
    """Name of a type as users write it."""
    module = kind.__module__
    name = kind.__qualname__
    return name if module in ("builtins", "__main__", None) else f"{module}.{name}"


NAMESPACE = "ns:"
"""Reference of a component which may hold the dictionary of globals."""


class NamespaceProxy:
    """Stands for the dictionary of globals."""


class StatePickler(pickle.Pickler):
    """Dumps one component.

    Parameters
    ----------
    registry : Registry
        Which objects are nodes of their own, and the save in progress.
    inline : frozenset of str
        Nodes to dump by value here; all others are referred to by key.
    name : str
        The variable being dumped, for messages about lost objects.
    """

    def __init__(self, registry: Registry, inline: frozenset[str], name: str) -> None:
        self.sink = io.BytesIO()
        self.buffers: list[pickle.PickleBuffer] = []
        super().__init__(self.sink, 5, buffer_callback=self._keep_buffer)
        self.registry = registry
        self.inline = inline
        self.name = name
        self.references: set[str] = set()
        self.seeded = False
        """Whether a first pickle stands for the globals."""
        self.by_reference: set[int] = set()
        """Ids of objects saved by name: two components may both name them unlinked."""
        self.unlinked: list[Any] = []
        """Immutable objects which may be saved twice; kept alive, as ids are compared."""
        self.copy_on_write: set[int] = set()
        """Ids of memory that frames share until one is written to: sharing it links no variables."""
        self.detached: set[int] = set()
        """Ids of arrays which are saved apart from the memory they view."""
        self.lost: list[tuple[str, str, int]] = []
        self.lost_classes: dict[int, str] = {}
        """Ids of classes which were given up, and why."""
        self.unequal: dict[int, Any] = {}
        """What stands for floats which are not equal to themselves, by their ids."""
        self.foreign: set[str] = set()
        self.modules: set[str] = set()
        self.filled_cells: set[int] = set()
        self.bare_cells: set[int] = set()

    def dump_namespace(self) -> None:
        """Write a first pickle which stands for the dictionary of globals.

        Exact dictionaries never reach `reducer_override`, so the pickler is told
        beforehand that it has written this one.
        """
        proxy = NamespaceProxy()
        self.dump(proxy)
        memo = self.memo.copy()
        memo[id(self.registry.namespace)] = (memo[id(proxy)][0], self.registry.namespace)
        self.memo = memo
        self.references.add(NAMESPACE)
        self.seeded = True

    def _keep_buffer(self, buffer: pickle.PickleBuffer) -> bool:
        if buffer.raw().nbytes < OUT_OF_BAND:
            return True
        self.buffers.append(buffer)
        return False

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if self.registry.lost_classes and id(kind) in self.registry.lost_classes:
            return self.lose(value, self.registry.lost_classes[id(kind)])
        try:
            reducer = self.registry.reducers[kind]
        except KeyError:
            reducer = self.registry.reducers[kind] = resolve_reducer(kind, self.registry)
        try:
            return reducer(self, value)
        except CannotPersistError as error:
            return self.lose(value, str(error))
        except (RecursionError, MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:
            return self.lose(value, reason_of(error))

    def lose(self, value: Any, reason: str) -> Any:
        """Replace one object by a stand-in and remember why."""
        label = type_label(type(value))
        self.lost.append((label, reason, self.registry.cell))
        if issubclass(type(value), type):
            self.lost_classes[id(value)] = reason
        return (rebuild_lost, (self.name, label, reason, self.registry.cell))

    def by_name(self, value: Any, module: str, path: str) -> Any:
        """Refer to something importable."""
        self.by_reference.add(id(value))
        key = self.registry.module_key(module)
        if key is not None:
            self.references.add(key)
        elif module not in sys.builtin_module_names:
            self.modules.add(module)
        if (
            getattr(value, "__module__", None) == module
            and getattr(value, "__qualname__", None) == path
            and find_importable(module, path) is value
        ):
            # The C pickler writes a plain global, which is shorter and remembered.
            return NotImplemented
        return (rebuild_global, (module, path))


@reduces(LostObject)
def reduce_lost(pickler: StatePickler, value: LostObject) -> Any:
    """Keep a stand-in as it is: it names the cell which made the object."""
    details = lost_details(value)
    pickler.lost.append(details[1:])
    return (rebuild_lost, details)


@reduces(NamespaceProxy)
def reduce_namespace(_pickler: StatePickler, _value: NamespaceProxy) -> Any:
    """Save what stands for the dictionary of globals."""
    return (rebuild_namespace, ())


@rebuilder
def rebuild_lost(name: str, type_name: str, reason: str, cell: int) -> LostObject:
    """Make the stand-in of an object which was not saved."""
    return LostObject(name, type_name, reason, cell)


@rebuilder
def rebuild_namespace() -> dict[str, Any]:
    """Give the dictionary of globals."""
    return current_loader().namespace


@rebuilder
def rebuild_global(module: str, path: str) -> Any:
    """Import something saved by name."""
    return current_loader().registry.patched.find(module, path)


@rebuilder
def rebuild_node(key: str) -> Any:
    """Give another node (class, function, module), loading it if need be."""
    return current_loader().resolve(key)

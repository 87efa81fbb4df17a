"""The pickler: C speed for plain data, own reducers for what pickle gets wrong.

``reducer_override`` is called for every object which is not a plain builtin
container or atom. It looks the type up in a table; a reducer gives a pickle
recipe, or raises :class:`CannotPersistError`, and then only that object is
replaced by a stand-in, not the variable around it.
"""

from __future__ import annotations

import copyreg
import importlib
import io
import pickle
import sys
from typing import TYPE_CHECKING, Any, cast

from .errors import CannotPersistError
from .lost import LostObject, lost_details
from .rebuild import current_loader, rebuilder

if TYPE_CHECKING:
    from collections.abc import Callable

    from .graph import Registry

Reducer = "Callable[[StatePickler, Any], Any]"

OUT_OF_BAND = 64 << 10
"""Buffers of this many bytes leave the pickle; thousands of small files would cost more."""

EXACT: dict[type, Callable[[StatePickler, Any], Any]] = {}
"""Reducers for exactly these types."""

BY_BASE: list[tuple[str, Callable[[StatePickler, Any], Any]]] = []
"""Reducers for a class given by qualified name, and its subclasses; the module need not exist."""

UNSAVEABLE: dict[str, str] = {}
"""Qualified names of types which cannot live on, and why."""


def reduces(*targets: type | str) -> Callable[[Any], Any]:
    """Register a reducer for types, or for qualified base-class names."""

    def register(function: Any) -> Any:
        for target in targets:
            if isinstance(target, str):
                BY_BASE.append((target, function))
            else:
                EXACT[target] = function
        return function

    return register


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
            return self.lose(value, f"{type(error).__name__}: {error}")

    def lose(self, value: Any, reason: str) -> Any:
        """Replace one object by a stand-in and remember why."""
        label = type_label(type(value))
        self.lost.append((label, reason, self.registry.cell))
        return (rebuild_lost, (self.name, label, reason, self.registry.cell))

    def by_name(self, value: Any, module: str, path: str) -> Any:
        """Refer to something importable."""
        self.by_reference.add(id(value))
        key = self.registry.module_key(module)
        if key is not None:
            self.references.add(key)
        elif module not in sys.builtin_module_names:
            self.modules.add(module)
        if getattr(value, "__module__", None) == module and (
            getattr(value, "__qualname__", None) == path
        ):
            # The C pickler writes a plain global, which is shorter and remembered.
            return NotImplemented
        return (rebuild_global, (module, path))


def reduce_foreign(pickler: StatePickler, value: Any) -> Any:
    """Save an object of a library the way that library defines."""
    kind = type(value)
    if pickler.registry.refused and type_label(kind) in pickler.registry.refused:
        raise CannotPersistError(pickler.registry.refused[type_label(kind)])
    place = pickler.registry.place_of(value)
    if place is not None:
        return pickler.by_name(value, *place)
    special = copyreg.dispatch_table.get(kind)
    # Asked of the type: a proxy would answer with the recipe of what it stands for.
    recipe = special(value) if special is not None else cast("Any", kind).__reduce_ex__(value, 5)
    if isinstance(recipe, str):
        module = getattr(value, "__module__", None) or kind.__module__
        found = find_importable(module, recipe)
        if module == "__main__" or pickler.registry.module_key(module) is not None:
            raise CannotPersistError("its type can only be saved by name, and names change")
        if found is not value:
            raise CannotPersistError(f"it says it is {module}.{recipe}, which is something else")
        return pickler.by_name(value, module, recipe)
    if not isinstance(recipe, tuple) or not 2 <= len(recipe) <= 6:
        raise CannotPersistError("its __reduce__ does not give a pickle recipe")
    from .reducers import instances

    if recipe[0] is copyreg.__newobj__:  # type: ignore[attr-defined]
        instances.refuse_hidden_type(kind, pickler.registry)
    if len(recipe) == 2 or recipe[2] is None:
        recipe = instances.with_attributes(value, recipe, pickler.registry)
    pickler.foreign.add(type_label(kind))
    module = kind.__module__
    if isinstance(module, str) and module != "builtins":  # sympy's functions say None
        pickler.modules.add(module)
    return recipe


_SINGLETONS = (
    ("os", "environ"), ("os", "environb"), ("sys", "path"), ("sys", "argv"), ("sys", "modules"),
    ("sys", "meta_path"), ("sys", "path_hooks"), ("sys", "flags"), ("warnings", "filters"),
    ("random", "_inst"), ("numpy.random.mtrand", "_rand"), ("matplotlib", "rcParams"),
    ("matplotlib", "colormaps"), ("pandas", "options"), ("logging", "root"), ("plotly.io", "renderers"),
    ("plotly.io", "templates"), ("polars", "Config"), ("builtins", "__dict__"),
)  # fmt: skip
"""Objects of which there is one in a process; a variable may name them, but never own them."""


def singletons() -> dict[int, tuple[str, str]]:
    """Module and path of the singletons of loaded libraries, by id."""
    found = {}
    for module, path in _SINGLETONS:
        if module in sys.modules:
            value = getattr(sys.modules[module], path, None)
            if value is not None:
                found[id(value)] = (module, path)
    return found


class ByName:
    """Saved in the place of a plain list or dictionary which belongs to a library."""

    def __init__(self, module: str, path: str) -> None:
        self.module = module
        self.path = path


def reduce_lost(pickler: StatePickler, value: LostObject) -> Any:
    """Keep a stand-in as it is: it names the cell which made the object."""
    details = lost_details(value)
    pickler.lost.append(details[1:])
    return (rebuild_lost, details)


def unsaveable(reason: str) -> Callable[[StatePickler, Any], Any]:
    """Make a reducer which refuses, for types that cannot live on."""

    def refuse(_pickler: StatePickler, _value: Any) -> Any:
        raise CannotPersistError(reason)

    return refuse


EXACT[LostObject] = reduce_lost
EXACT[ByName] = lambda pickler, value: pickler.by_name(value, value.module, value.path)
EXACT[NamespaceProxy] = lambda _pickler, _value: (rebuild_namespace, ())


def resolve_reducer(kind: type, registry: Registry) -> Callable[[StatePickler, Any], Any]:
    """Choose the reducer of a type, once."""
    from . import reducers

    found = EXACT.get(kind)
    if found is not None:
        return found
    if issubclass(kind, type):
        return reducers.classes.reduce_class
    names = [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]
    for name in names:
        if name in UNSAVEABLE:
            return unsaveable(UNSAVEABLE[name])
    for target, reducer in BY_BASE:
        if target in names:
            return reducer
    if reducers.instances.is_user_class(kind, registry):
        return reducers.instances.reduce_instance
    if issubclass(kind, BaseException):
        return reducers.instances.reduce_exception
    if reducers.instances.is_plain_class(kind):
        return reducers.instances.reduce_library_instance
    return reduce_foreign


def find_importable(module: str, path: str) -> Any:
    """Find a module attribute by dotted path among loaded modules; None if absent."""
    found: Any = sys.modules.get(module)
    if found is None:
        return None
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return None
    return found


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
    found: Any = importlib.import_module(module)
    for part in path.split(".") if path else ():
        found = getattr(found, part)
    return found


@rebuilder
def rebuild_node(key: str) -> Any:
    """Give another node (class, function, module), loading it if need be."""
    return current_loader().resolve(key)

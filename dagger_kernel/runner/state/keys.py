"""Which node each binding is: the key its value is saved under."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .reducers.functions import importable_name

if TYPE_CHECKING:
    from .loader import Loader

_SINGLETONS = (type(None), bool, type(...), type(NotImplemented))


def assign_keys(names: dict[str, Any], loader: Loader) -> dict[str, str]:
    """Give each binding a key; names bound to one object share one.

    Parameters
    ----------
    names : dict
        The bindings in memory.
    loader : Loader
        The saved side: a value which is still the loaded one keeps its key.

    Returns
    -------
    dict of str to str
        Keys by name, in the order of the names.
    """
    keys = _Keys(loader)
    return {name: keys.key(name, names[name]) for name in sorted(names)}


class _Keys:
    """Gives keys, each to one object only."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._registry = loader.registry
        self._by_object: dict[int, str] = {}
        # A name bound anew must not take the key of a value still saved under it.
        self._used = {key for key, cid in loader.component_of.items() if cid not in loader.loaded}

    def key(self, name: str, value: Any) -> str:
        """Key of a value which a name is bound to."""
        known = self._definition(value)
        if known is not None and not known.startswith("m:"):
            return known
        if type(value) in _SINGLETONS or (type(value) is int and -6 < value < 257):
            return self._new(name, value)
        if id(value) not in self._by_object:
            self._by_object[id(value)] = self._new(name, value)
        return self._by_object[id(value)]

    def _definition(self, value: Any) -> str | None:
        """Key of a class, function or module which is a node by itself."""
        known = self._registry.key_of(value)
        if known is not None:
            return known
        is_function = id(value) in self._registry.bound_functions
        if not (is_function or issubclass(type(value), type)) or self._by_name_only(value):
            return None
        if is_function:
            return self._registry.function_key(value)
        return self._registry.class_key(value)

    def _by_name_only(self, value: Any) -> bool:
        return importable_name(value, self._registry) is not None or (
            issubclass(type(value), type) and value.__module__ == "builtins"
        )

    def _new(self, name: str, value: Any) -> str:
        """Make the key of a variable's value, or find the one it was loaded under."""
        entry = self._loader.manifest.names.get(name)
        found = f"v:{name}"
        if (
            entry is not None
            and entry.key.startswith("v:")
            and self._loader.value_ids.get(entry.key) == id(value)
            and entry.key not in self._used
        ):
            found = entry.key
        number = 0
        while found in self._used:
            number += 1
            found = f"v:{name}~{number}"
        self._used.add(found)
        return found

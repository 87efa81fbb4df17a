"""What has an identity of its own, and what links two of them.

Nodes are referred to across components by key:

========  =====================================================================
``v:``    the value of one or more variables (or ``Out`` entries)
``c:``    a class made in the notebook
``f:``    a function (or type variable) bound to a name in the notebook
``m:``    a module of the user's own
``a:``    state which lives in libraries or the interpreter
========  =====================================================================
"""

from __future__ import annotations

import sys
import types
import typing
from typing import TYPE_CHECKING, Any

from .patched import Patched

if TYPE_CHECKING:
    from collections.abc import Callable


class Registry:
    """Which live objects are nodes.

    Parameters
    ----------
    namespace : dict
        The globals of ``__main__``.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.reducers: dict[type, Callable[..., Any]] = {}
        self.objects: dict[str, Any] = {}
        """Live classes, functions and modules by key."""
        self.keys: dict[int, str] = {}
        self.bound_functions: set[int] = set()
        """Ids of functions and type variables bound to a name: they become nodes when reached."""
        self.managed_modules: set[str] = set()
        self.singletons: dict[int, tuple[str, str]] = {}
        """Module and path of objects which a process has once, by id."""
        self._module_values: dict[str, dict[int, str]] = {}
        self.patched = Patched()
        self.lost_classes: dict[int, str] = {}
        """Classes which this save gives up, by id, and why: their instances are lost, too."""
        self.unequal: set[str] = set()
        """Keys of values with floats which are not equal to themselves, as far as it is known."""
        self.refused: dict[str, str] = {}
        """Types of libraries whose objects turned out not to load, and why."""
        self.fresh: list[str] = []
        """Nodes found since the list was last emptied; they need a dump of their own."""
        self.cell = 0
        self.sequence = 0
        self._counter = 0

    def place_of(self, value: Any) -> tuple[str, str] | None:
        """Module and name of an object of which a library has one, such as a sentinel."""
        found = self.singletons.get(id(value))
        if found is not None:
            return found
        module = type(value).__module__
        names = self._module_values.get(module)
        if names is None:
            content = vars(sys.modules[module]) if module in sys.modules else {}
            if module == "__main__" or module in self.managed_modules:
                content = {}
            names = {id(v): n for n, v in list(content.items()) if type(v).__module__ == module}
            self._module_values[module] = names
        name = names.get(id(value))
        return (module, name) if name is not None else None

    def register(self, key: str, value: Any) -> None:
        """Record a live node."""
        self.objects[key] = value
        self.keys[id(value)] = key

    def key_of(self, value: Any) -> str | None:
        """Key of a live class, function or module node."""
        return self.keys.get(id(value))

    def class_key(self, cls: type) -> str:
        """Key of a class, made on first sight."""
        return self.keys.get(id(cls)) or self._new("c", cls)

    def function_key(self, function: Any) -> str | None:
        """Key of a function or type variable, if it is bound to a name (or was when first saved)."""
        key = self.keys.get(id(function))
        if key is None and id(function) in self.bound_functions:
            key = self._new("f", function)
        return key

    def module_key(self, name: str | None) -> str | None:
        """Key of a user's module, or None for the modules of libraries."""
        return f"m:{name}" if name in self.managed_modules else None

    def _new(self, kind: str, value: Any) -> str:
        self._counter += 1
        key = f"{kind}:{self.sequence}.{self._counter}"
        self.register(key, value)
        self.fresh.append(key)
        return key


_ATOMS: frozenset[type] = frozenset(
    {str, bytes, int, float, complex, bool, type(None), type(...), type(NotImplemented),
     range, slice, types.BuiltinFunctionType, types.ModuleType, types.CodeType,
     types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
     types.MemberDescriptorType}
)  # fmt: skip

_IMMUTABLE_MODULES = ("datetime", "decimal", "fractions", "uuid", "pathlib", "zoneinfo", "re",
                      "ipaddress", "enum", "typing", "_decimal", "pyarrow.lib")  # fmt: skip

NAMED = (types.FunctionType, typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple, typing.NewType)
"""Kinds which are nodes of their own where a name is bound to them."""

_linkable: dict[type, bool] = dict.fromkeys(NAMED, True)


def is_linkable(kind: type) -> bool:
    """Whether sharing an object of this type between two variables can be noticed."""
    found = _linkable.get(kind)
    if found is None:
        found = _linkable[kind] = not (
            kind in _ATOMS
            or issubclass(kind, type)
            or kind.__module__ in _IMMUTABLE_MODULES
            or any(b.__name__ in ("dtype", "ExtensionDtype", "Enum") for b in kind.__mro__)
        )
    return found

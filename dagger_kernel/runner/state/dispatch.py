"""Which reducer saves objects of a type: the table which modules of reducers fill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import CannotPersistError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .graph import Registry
    from .pickler import StatePickler

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
            return _refusal(UNSAVEABLE[name])
    for target, reducer in BY_BASE:
        if target in names:
            return reducer
    if reducers.layout.is_user_class(kind, registry):
        return reducers.instances.reduce_instance
    if issubclass(kind, BaseException):
        return reducers.exceptions.reduce_exception
    if reducers.layout.is_plain_class(kind):
        return reducers.instances.reduce_library_instance
    return reducers.foreign.reduce_foreign


def _refusal(reason: str) -> Callable[[StatePickler, Any], Any]:
    """Make a reducer which refuses, for types that cannot live on."""

    def refuse(_pickler: StatePickler, _value: Any) -> Any:
        raise CannotPersistError(reason)

    return refuse

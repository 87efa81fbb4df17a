"""Instances of the user's classes.

Within one process nothing is pickled between two cells, so a user's
``__getstate__``, ``__setstate__`` or ``__reduce__`` would never run. They must
not run here either: instances of the notebook's classes are saved as they are,
attribute by attribute.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..rebuild import rebuilder
from .exceptions import reduce_exception
from .layout import carrier_of, made_by_statement, raw_dict, restore_instance, slot_values

if TYPE_CHECKING:
    from ..pickler import StatePickler


@reduces(object)
def reduce_plain_object(pickler: StatePickler, value: object) -> Any:
    """Save a bare ``object()``: a sentinel, compared by identity."""
    for module in ("functools", "dataclasses", "inspect", "typing"):
        found = sys.modules.get(module)
        for name in ("_kwd_mark", "kwd_mark", "MISSING", "_empty", "_MISSING"):
            if found is not None and getattr(found, name, None) is value:
                return pickler.by_name(value, module, name)
    return (object, ())


@reduces("random.SystemRandom")
def reduce_system_random(_pickler: StatePickler, value: Any) -> Any:
    """Save a source of the system's randomness: there is no more to it than its attributes."""
    return (rebuild_instance, (type(value),), (raw_dict(value), None, None), None, None,
            restore_instance)  # fmt: skip


def reduce_library_instance(pickler: StatePickler, value: Any) -> Any:
    """Save an instance of a library's plain class."""
    place = pickler.registry.place_of(value)
    return pickler.by_name(value, *place) if place is not None else reduce_instance(pickler, value)


def reduce_instance(pickler: StatePickler, value: Any) -> Any:
    """Save an instance as it is."""
    kind = type(value)
    carrier = carrier_of(kind)
    if carrier is None:
        raise CannotPersistError("its class is built on a type whose content is not accessible")
    if issubclass(kind, BaseException):
        return reduce_exception(pickler, value)
    attributes = raw_dict(value)
    slots = slot_values(value) or None
    content: Any = None
    if carrier in (list, dict, set, bytearray):
        content = carrier(cast("Any", carrier).copy(value))  # never the user's own `__iter__`
    elif carrier is not object:
        return (
            rebuild_immutable,
            (kind, carrier, _plain(carrier, value)),
            (attributes, slots, None),
            None,
            None,
            restore_instance,
        )
    state = (attributes, slots, content)
    if attributes is None and slots is None and content is None:
        return (rebuild_instance, (kind,))
    return (rebuild_instance, (kind,), state, None, None, restore_instance)


def _plain(carrier: type, value: Any) -> Any:
    """The content of a subclass instance as the builtin type itself."""
    if carrier is tuple:
        return tuple(tuple.__iter__(value))
    if carrier is str:
        return str.__str__(value)[:]
    if carrier is int:
        return int.__int__(value)
    if carrier is float:
        return float.__float__(value)
    if carrier is bytes:
        return bytes.__getitem__(value, slice(None))
    if carrier is complex:
        return complex(value.real, value.imag)
    return frozenset(frozenset.__iter__(value))


@rebuilder
def rebuild_instance(cls: type) -> Any:
    """Make an empty instance without running any user code."""
    for base in cls.__mro__:
        if not made_by_statement(base):
            return cast("Any", base).__new__(cls)
    return object.__new__(cls)


@rebuilder
def rebuild_immutable(cls: type, carrier: Any, content: Any) -> Any:
    """Make an instance of a subclass of an immutable builtin."""
    return carrier.__new__(cls, content)

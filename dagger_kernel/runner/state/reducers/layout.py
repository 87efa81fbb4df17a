"""What instances are made of: a builtin type's content, a dictionary, slots.

Attributes are read and set without running user code.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..errors import CannotPersistError
from ..rebuild import rebuilder
from .functions import importable_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..graph import Registry

_HOOKS = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs__",
          "__getnewargs_ex__")  # fmt: skip
"""With one of these, pickle does not copy an instance attribute by attribute."""

_PLAIN = (list, dict, set, frozenset, tuple, int, float, complex, str, bytes, bytearray)

_Answer = TypeVar("_Answer")


def per_class(function: Callable[[type], _Answer]) -> Callable[[type], _Answer]:
    """Answer a question about a class once."""
    return cast("Callable[[type], _Answer]", functools.cache(function))


def is_user_class(kind: type, registry: Registry) -> bool:
    """Whether instances are saved raw: a class of the notebook or of a user's module."""
    library = kind.__module__ != "__main__" and registry.module_key(kind.__module__) is None
    if library and (importable_name(kind, registry) is not None or not made_by_statement(kind)):
        return False
    for base in kind.__mro__[:-1]:
        if base.__module__ == "__main__" or registry.module_key(base.__module__) is not None:
            continue
        if importable_name(base, registry) is None and made_by_statement(base):
            continue
        # A library's own protocol knows about state which we cannot see.
        if base in _PLAIN or base.__module__ in ("abc", "typing", "enum"):
            continue
        if any(hook in vars(base) for hook in _HOOKS) and base is not BaseException:
            return issubclass(kind, BaseException)
    return carrier_of(kind) is not None


def is_plain_class(kind: type) -> bool:
    """Whether a library's class is plain Python without a protocol of its own.

    Its instances are saved raw too: the usual way would ask the half-made object
    for ``__setstate__``, which a ``__getattr__`` of its own may not survive.
    """
    if carrier_of(kind) is None or issubclass(kind, BaseException) or not made_by_statement(kind):
        return False
    bases = [base for base in kind.__mro__[:-1] if base not in _PLAIN]
    return not any(hook in vars(base) for base in bases for hook in _HOOKS)


@per_class
def made_by_statement(cls: type) -> bool:
    """Whether a class adds no C structure: all its state is in its dictionary and slots."""
    base = cls.__base__
    if base is None or not cls.__flags__ & (1 << 9):  # Py_TPFLAGS_HEAPTYPE
        return False
    if cls.__module__ == "_ctypes":  # since 3.13 its metaclasses look like a statement's
        return False
    slots = sum(
        isinstance(value, types.MemberDescriptorType) and value.__objclass__ is cls
        for value in vars(cls).values()
    )
    added = cls.__basicsize__ - base.__basicsize__
    gained = int(bool(cls.__dictoffset__) and not base.__dictoffset__)
    gained += int(bool(cls.__weakrefoffset__) and not base.__weakrefoffset__)
    return added <= 8 * (slots + gained)


@per_class
def carrier_of(kind: type) -> type | None:
    """The builtin type which holds an instance's content, if it is one we can copy."""
    for base in kind.__mro__:
        if base is object or base in _PLAIN or base.__module__ in ("typing", "_typing"):
            return base if base is object or base in _PLAIN else object
        if made_by_statement(base):
            continue
        return base if issubclass(base, BaseException) else None
    return None


def refuse_hidden_type(kind: type, registry: Registry) -> None:
    """Refuse an instance of a C type which cannot be found again by name."""
    if not made_by_statement(kind) and importable_name(kind, registry) is None:
        raise CannotPersistError("its type belongs to a C library and has no importable name")


# --- attributes ---------------------------------------------------------------------------


def raw_dict(value: Any) -> dict[str, Any] | None:
    """The attribute dictionary of an instance, bypassing properties; None without one."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    # An empty dictionary matters when something else holds it too, as in the Borg pattern.
    # References: the object's, this variable and the argument of the call.
    return found if found or sys.getrefcount(found) > 3 else None


@per_class
def _slots(kind: type) -> list[tuple[str, types.MemberDescriptorType]]:
    """Descriptors of the slots of a class, the nearest of each name first."""
    found: dict[str, types.MemberDescriptorType] = {}
    for base in kind.__mro__:
        if "__slots__" in vars(base):
            for name, descriptor in vars(base).items():
                if isinstance(descriptor, types.MemberDescriptorType):
                    found.setdefault(name, descriptor)
    return list(found.items())


def slot_values(value: Any) -> dict[str, Any]:
    """Values of the slots of an instance, by descriptor name, including private ones."""
    kind = type(value)
    found: dict[str, Any] = {}
    for name, descriptor in _slots(kind):
        try:
            found[name] = descriptor.__get__(value, kind)
        except AttributeError:
            continue
    return found


def with_attributes(value: Any, recipe: tuple[Any, ...], registry: Registry) -> tuple[Any, ...]:
    """Add what a C base class's protocol forgets: the attributes of the user's subclass."""
    kind = type(value)
    if kind.__module__ != "__main__" and registry.module_key(kind.__module__) is None:
        return recipe
    state = (raw_dict(value), slot_values(value) or None, None)
    if state[0] is None and state[1] is None:
        return recipe
    padded = (*recipe, None, None, None)[:5]
    return (*padded[:2], state, *padded[3:5], restore_instance)


@rebuilder
def restore_instance(value: Any, state: tuple[Any, ...]) -> None:
    """Set the attributes of an instance without running any user code."""
    attributes, slots, content = state
    if content is not None:
        if isinstance(value, list | bytearray):
            type(content).extend(value, content)
        else:
            type(content).update(value, content)
    if attributes is not None:
        try:
            # The dictionary itself, not a copy: two instances may share it.
            object.__setattr__(value, "__dict__", attributes)
        except (AttributeError, TypeError):
            object.__getattribute__(value, "__dict__").update(attributes)
    for name, content_of_slot in (slots or {}).items():
        for base in type(value).__mro__:
            descriptor = vars(base).get(name)
            if isinstance(descriptor, types.MemberDescriptorType):
                descriptor.__set__(value, content_of_slot)
                break

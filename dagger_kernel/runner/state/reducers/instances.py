"""Instances of the user's classes, and exceptions.

Within one process nothing is pickled between two cells, so a user's
``__getstate__``, ``__setstate__`` or ``__reduce__`` would never run. They must
not run here either: instances of the notebook's classes are saved as they are,
attribute by attribute.
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
    from ..pickler import StatePickler

_HOOKS = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs__",
          "__getnewargs_ex__", "__copy__", "__deepcopy__")  # fmt: skip

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
        if any(hook in vars(base) for hook in _HOOKS[:6]) and base is not BaseException:
            return issubclass(kind, BaseException)
    return _carrier(kind) is not None


def is_plain_class(kind: type) -> bool:
    """Whether a library's class is plain Python without a protocol of its own.

    Its instances are saved raw too: the usual way would ask the half-made object
    for ``__setstate__``, which a ``__getattr__`` of its own may not survive.
    """
    if _carrier(kind) is None or issubclass(kind, BaseException) or not made_by_statement(kind):
        return False
    hooks = _HOOKS[:6]
    bases = [base for base in kind.__mro__[:-1] if base not in _PLAIN]
    return not any(hook in vars(base) for base in bases for hook in hooks)


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
def _carrier(kind: type) -> type | None:
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


def reduce_library_instance(pickler: StatePickler, value: Any) -> Any:
    """Save an instance of a library's plain class."""
    place = pickler.registry.place_of(value)
    return pickler.by_name(value, *place) if place is not None else reduce_instance(pickler, value)


def reduce_instance(pickler: StatePickler, value: Any) -> Any:
    """Save an instance as it is."""
    kind = type(value)
    carrier = _carrier(kind)
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


def raw_dict(value: Any) -> dict[str, Any] | None:
    """The attribute dictionary of an instance, bypassing properties; None without one."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    # An empty dictionary matters when something else holds it too, as in the Borg pattern.
    # References: the object's, this variable and the argument of the call.
    return found if found or sys.getrefcount(found) > 3 else None


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


_EXCEPTION_FIELDS = {
    "OSError": ("errno", "strerror", "filename", "filename2"),
    "SyntaxError": ("msg", "filename", "lineno", "offset", "text", "print_file_and_line",
                    "end_lineno", "end_offset"),
    "ImportError": ("msg", "name", "path"),
    "UnicodeError": ("encoding", "object", "start", "end", "reason"),
    "StopIteration": ("value",),
    "SystemExit": ("code",),
    "NameError": ("name",),
    "AttributeError": ("name", "obj"),
}  # fmt: skip


def reduce_exception(pickler: StatePickler, value: BaseException) -> Any:
    """Save an exception without its ``__init__``, whose signature may differ from ``args``."""
    kind = type(value)
    fields: dict[str, Any] = {}
    for base in kind.__mro__:
        for name in _EXCEPTION_FIELDS.get(base.__name__, ()):
            if base.__module__ == "builtins":
                try:
                    fields[name] = getattr(value, name)
                except AttributeError:
                    continue
    arguments: Any = value.args
    if isinstance(value, BaseExceptionGroup):
        held = value.args[1] if len(value.args) == 2 else ()
        if not isinstance(held, list | tuple) or tuple(map(id, held)) != tuple(
            map(id, value.exceptions)
        ):
            arguments = (value.message, value.exceptions)
    elif isinstance(value, OSError) and fields.get("filename") is not None:
        arguments = (value.errno, value.strerror, value.filename, None, value.filename2)
    del pickler
    state = (
        value.args,
        value.__cause__,
        value.__context__,
        value.__suppress_context__,
        raw_dict(value),
        slot_values(value) or None,
        fields,
        value.__traceback__,
    )
    return (rebuild_exception, (kind, arguments), state, None, None, restore_exception)


@rebuilder
def rebuild_exception(cls: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    """Make an exception without its ``__init__``."""
    for base in cls.__mro__:
        if not made_by_statement(base):
            break
    made = base.__new__(cls, *arguments)
    assert isinstance(made, BaseException)
    return made


@rebuilder
def restore_exception(value: BaseException, state: tuple[Any, ...]) -> None:
    """Set what an exception carries."""
    arguments, cause, context, suppress, attributes, slots, fields, traceback = state
    if not isinstance(value, BaseExceptionGroup):
        value.args = arguments
    for name, content in fields.items():
        try:
            setattr(value, name, content)
        except (AttributeError, TypeError):
            continue
    value.__cause__ = cause
    value.__context__ = context
    value.__suppress_context__ = suppress
    if isinstance(traceback, types.TracebackType):
        value.__traceback__ = traceback
    restore_instance(value, (attributes, slots, None))


assert sys.version_info >= (3, 11)

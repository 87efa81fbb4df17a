"""Classes made in the notebook, saved by value as nodes of their own.

A class is rebuilt in two steps: an empty class first, its attributes later, so
that methods, instances in attributes and other classes may all refer to it.
Nothing the user wrote runs on the way: no metaclass, ``__init_subclass__`` or
``__set_name__`` is called a second time.
"""

from __future__ import annotations

import abc
import types
from typing import TYPE_CHECKING, Any, cast

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..pickler import rebuild_node
from ..rebuild import current_loader, rebuilder
from .cdata import ctypes_base, ctypes_type, is_layout, layout_of
from .functions import importable_name
from .layout import made_by_statement

if TYPE_CHECKING:
    from ..pickler import StatePickler

_SKIPPED = frozenset({"__dict__", "__weakref__", "_abc_impl", "__annotations_cache__"})
_AT_CREATION = ("__module__", "__qualname__", "__doc__", "__firstlineno__", "__static_attributes__")

_EARLY = (
    types.FunctionType,
    staticmethod,
    classmethod,
    property,
    types.BuiltinFunctionType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
)
"""Attributes set first: rebuilding the others may need the class's methods."""


def reduce_class(pickler: StatePickler, cls: type) -> Any:
    """Save a class by name, as a node, or (where it is the node) as an empty class."""
    registry = pickler.registry
    if id(cls) in registry.lost_classes:
        raise CannotPersistError(registry.lost_classes[id(cls)])
    name = importable_name(cls, registry)
    if name is not None:
        return pickler.by_name(cls, *name)
    if issubclass(cls, ctypes_base()):
        made = ctypes_type(cls)
        if made is not None:
            return made
    if not made_by_statement(cls):
        return _builtin_type(cls)
    key = registry.class_key(cls)
    if key not in pickler.inline:
        pickler.references.add(key)
        return (rebuild_node, (key,))
    for base in cls.__bases__:
        reduce_class(pickler, base)  # without one of its bases it is lost itself
    skeleton = class_skeleton(key, cls)
    if not made_by_statement(type(cls)) and importable_name(type(cls), registry) is None:
        # A metaclass without a name, as those of ctypes: the bases lead to it.
        skeleton = (key, None, *skeleton[2:])
    return (rebuild_class, skeleton)


def _builtin_type(cls: type) -> Any:
    """Save a type of the interpreter which has no name in ``builtins``."""
    for name in dir(types):
        if getattr(types, name) is cls:
            return (getattr, (types, name))
    if cls is type(None) or cls is type(...) or cls is type(NotImplemented):
        return NotImplemented
    raise CannotPersistError(f"the type {cls.__name__} has no importable name")


def class_skeleton(key: str, cls: type) -> tuple[Any, ...]:
    """Arguments which make the empty class."""
    content = vars(cls)
    created: dict[str, Any] = {
        name: content[name]
        for name in _AT_CREATION
        if isinstance(content.get(name), str | int | tuple)
    }
    if content.get("__module__", "") is None:
        created["__module__"] = None
    created["__qualname__"] = cls.__qualname__
    created |= layout_of(cls)
    slots = _slots(cls)
    if slots is not None:
        created["__slots__"] = slots
    return (key, type(cls), cls.__name__, cls.__bases__, created)


def _slots(cls: type) -> Any:
    content = vars(cls)
    if "__slots__" not in content:
        return None
    declared = content["__slots__"]
    if isinstance(declared, str | tuple | list | dict):
        return declared
    # An iterator was used up by the class statement: its descriptors tell the names.
    return tuple(n for n, v in content.items() if isinstance(v, types.MemberDescriptorType))


class ClassState:
    """What fills an empty class; one object per step of filling."""

    def __init__(self, cls: type, *, early: bool) -> None:
        self.cls = cls
        self.early = early


@reduces(ClassState)
def reduce_class_state(_pickler: StatePickler, state: ClassState) -> Any:
    """Save one half of a class's attributes."""
    cls = state.cls
    chosen = {}
    for name, value in vars(cls).items():
        if name in _SKIPPED or name in ("__module__", "__qualname__", "__slots__"):
            continue
        if is_layout(cls, name, value):
            continue
        if isinstance(value, types.MemberDescriptorType) and value.__objclass__ is cls:
            continue
        if isinstance(value, types.GetSetDescriptorType) and value.__objclass__ is cls:
            continue
        if (isinstance(value, _EARLY)) == state.early:
            chosen[name] = value
    virtual: list[Any] = []
    if not state.early and isinstance(cls, abc.ABCMeta):
        virtual = [ref() for ref in _abc_dump(cls)[0]]
    return (restore_class, (cls, chosen, state.early, [v for v in virtual if v is not None]))


def _abc_dump(cls: Any) -> Any:
    import _abc  # type: ignore[import-not-found] # the C part of abc; typeshed has none

    return _abc._get_dump(cls)


@rebuilder
def rebuild_class(
    key: str, meta: type | None, name: str, bases: tuple[type, ...], content: dict[str, Any]
) -> type:
    """Make an empty class without running any user code."""
    watchers = {
        base
        for parent in bases
        for base in parent.__mro__[:-1]
        if "__init_subclass__" in vars(base)
    }
    kept = [(base, vars(base)["__init_subclass__"]) for base in watchers]
    changed = []
    try:
        for base, hook in kept:
            try:
                type.__setattr__(base, "__init_subclass__", classmethod(cast("Any", _ignore)))
            except TypeError:  # a type of the interpreter
                continue
            changed.append((base, hook))
        kind: Any = meta or type(bases[0])
        make = type.__new__ if issubclass(kind, type) and meta is not None else kind.__new__
        cls: type = make(kind, name, bases, dict(content))
        if kind.__module__ == "_ctypes":
            kind.__init__(cls, name, bases, dict(content))  # since 3.13 the layout is made here
    finally:
        for base, hook in changed:
            type.__setattr__(base, "__init_subclass__", hook)
    current_loader().register(key, cls)
    return cls


def _ignore(_cls: type, **_kwargs: Any) -> None:
    """Take the place of ``__init_subclass__``, which ran when the class was made."""


@rebuilder
def restore_class(cls: type, content: dict[str, Any], early: bool, virtual: list[type]) -> None:
    """Set attributes of a class as they were, bypassing descriptors and metaclasses."""
    for name, value in content.items():
        try:
            type.__setattr__(cls, name, value)
        except TypeError:  # a metaclass written in C insists on its own
            setattr(cls, name, value)
    if not early and isinstance(cls, abc.ABCMeta):
        import _abc

        _abc._abc_init(cls)
        for other in virtual:
            _abc._abc_register(cls, other)

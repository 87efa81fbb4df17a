"""Classes made in the notebook, saved by value as nodes of their own.

A class is rebuilt in two steps: an empty class first, its attributes later, so
that methods, instances in attributes and other classes may all refer to it.
Nothing the user wrote runs on the way: no metaclass, ``__init_subclass__`` or
``__set_name__`` is called a second time.
"""

from __future__ import annotations

import abc
import enum
import sys
import types
import typing
from typing import TYPE_CHECKING, Any, cast

from ..errors import CannotPersistError
from ..pickler import EXACT, rebuild_node, reduces
from ..rebuild import current_loader, rebuilder
from .functions import importable_name
from .instances import made_by_statement

if TYPE_CHECKING:
    from ..pickler import StatePickler

_SKIPPED = frozenset({"__dict__", "__weakref__", "_abc_impl", "__annotations_cache__"})
_AT_CREATION = ("__module__", "__qualname__", "__doc__", "__firstlineno__", "__static_attributes__")
_CTYPES_LAYOUT = (
    "_pack_",
    "_anonymous_",
    "_align_",
    "_layout_",
    "_swappedbytes_",
    "_fields_",
    "_type_",
    "_length_",
)

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
    name = importable_name(cls, registry)
    if name is not None:
        return pickler.by_name(cls, *name)
    if issubclass(cls, _ctypes_base()):
        made = _ctypes_type(cls)
        if made is not None:
            return made
    if not made_by_statement(cls):
        return _builtin_type(pickler, cls)
    key = registry.class_key(cls)
    if key not in pickler.inline:
        pickler.references.add(key)
        return (rebuild_node, (key,))
    skeleton = class_skeleton(key, cls)
    if not made_by_statement(type(cls)) and importable_name(type(cls), registry) is None:
        # A metaclass without a name, as those of ctypes: the bases lead to it.
        skeleton = (key, None, *skeleton[2:])
    return (rebuild_class, skeleton)


def _ctypes_base() -> Any:
    module = sys.modules.get("_ctypes")
    return module.Structure.__base__ if module is not None else ()


def _ctypes_type(cls: Any) -> Any:
    """Save a ctypes array or pointer type as its construction."""
    import ctypes

    if (
        issubclass(cls, ctypes.Array)
        and cls.__name__ == f"{cls._type_.__name__}_Array_{cls._length_}"
    ):
        return (rebuild_ctypes_array, (cls._type_, cls._length_))
    if issubclass(cls, ctypes._Pointer) and cls.__name__ == f"LP_{cls._type_.__name__}":
        return (ctypes.POINTER, (cls._type_,))
    return None


@rebuilder
def rebuild_ctypes_array(kind: Any, length: int) -> Any:
    """Make a ctypes array type."""
    return kind * length


def _builtin_type(pickler: StatePickler, cls: type) -> Any:
    """Save a type of the interpreter which has no name in ``builtins``."""
    for name in dir(types):
        if getattr(types, name) is cls:
            return (getattr, (types, name))
    if cls is type(None) or cls is type(...) or cls is type(NotImplemented):
        return NotImplemented
    del pickler
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
    if issubclass(cls, _ctypes_base()):
        created.update((name, content[name]) for name in _CTYPES_LAYOUT if name in content)
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


def reduce_class_state(_pickler: StatePickler, state: ClassState) -> Any:
    """Save one half of a class's attributes."""
    cls = state.cls
    chosen = {}
    for name, value in vars(cls).items():
        if name in _SKIPPED or name in ("__module__", "__qualname__", "__slots__"):
            continue
        if type(value).__name__ == "CField" or (
            name in _CTYPES_LAYOUT and "CField" in map(_type_name, vars(cls).values())
        ):
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


def _type_name(value: Any) -> str:
    return type(value).__name__


EXACT[ClassState] = reduce_class_state


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


# --- what stands in class bodies -------------------------------------------------------


@reduces(property)
def reduce_property(_pickler: StatePickler, value: property) -> Any:
    """Save a property."""
    return (property, (value.fget, value.fset, value.fdel, value.__doc__))


@reduces(staticmethod, classmethod)
def reduce_wrapper(_pickler: StatePickler, value: Any) -> Any:
    """Save a static or class method."""
    return (type(value), (value.__func__,))


@reduces("enum.Enum")
def reduce_enum_member(pickler: StatePickler, member: enum.Enum) -> Any:
    """Refer to an enum member; its class keeps the object itself."""
    cls = type(member)
    registry = pickler.registry
    if importable_name(cls, registry) is None and registry.class_key(cls) in pickler.inline:
        from .instances import reduce_instance

        return reduce_instance(pickler, member)
    pickler.by_reference.add(id(member))
    label = member._name_
    if label is not None and cls._member_map_.get(label) is member:
        return (rebuild_enum_member, (cls, label))
    return (rebuild_enum_value, (cls, member._value_))


@rebuilder
def rebuild_enum_member(cls: type[enum.Enum], name: str) -> enum.Enum:
    """Give an enum member."""
    return cls._member_map_[name]


@rebuilder
def rebuild_enum_value(cls: type[enum.Enum], value: Any) -> enum.Enum:
    """Give a composite flag."""
    return cls(value)


def as_node(pickler: StatePickler, value: Any) -> Any:
    """A reference to something which is a node elsewhere; None if it is to be written here."""
    key = pickler.registry.function_key(value)
    if key is None or key in pickler.inline:
        return None
    pickler.references.add(key)
    pickler.by_reference.add(id(value))
    return (rebuild_node, (key,))


@reduces(typing.TypeVar)
def reduce_typevar(pickler: StatePickler, value: typing.TypeVar) -> Any:
    """Save a type variable of the notebook by value."""
    module = getattr(value, "__module__", "")
    found = getattr(sys.modules.get(module), value.__name__, None) if module else None
    if found is value and module != "__main__" and pickler.registry.module_key(module) is None:
        pickler.by_reference.add(id(value))
        return value.__name__
    node = as_node(pickler, value)
    if node is not None:
        return node
    options = {
        "covariant": value.__covariant__,
        "contravariant": value.__contravariant__,
    }
    if value.__bound__ is not None:
        options["bound"] = value.__bound__
    if getattr(value, "__infer_variance__", False):
        options = {**options, "infer_variance": True}
    return (rebuild_typevar, (value.__name__, value.__constraints__, options, module))


@rebuilder
def rebuild_typevar(
    name: str, constraints: tuple[Any, ...], options: dict[str, Any], module: str
) -> typing.TypeVar:
    """Make a type variable."""
    made = typing.TypeVar(name, *constraints, **options)  # type: ignore[misc]
    try:
        made.__module__ = module
    except AttributeError:
        pass
    return made


@reduces(typing.NewType)
def reduce_newtype(pickler: StatePickler, value: Any) -> Any:
    """Save a new type of the notebook by value."""
    if importable_name(value, pickler.registry) is not None:
        return pickler.by_name(value, value.__module__, value.__qualname__)
    node = as_node(pickler, value)
    if node is not None:
        return node
    names = (value.__name__, value.__qualname__, value.__module__)
    return (rebuild_newtype, (names, value.__supertype__))


@rebuilder
def rebuild_newtype(names: tuple[str, str, str], supertype: Any) -> Any:
    """Make a new type."""
    made: Any = typing.NewType(names[0], supertype)  # type: ignore[misc]
    made.__qualname__, made.__module__ = names[1], names[2]
    return made


def reduce_parameter(pickler: StatePickler, value: Any) -> Any:
    """Save a parameter specification or a variadic type variable of the notebook."""
    module = getattr(value, "__module__", "")
    name = str(value.__name__)
    if module != "__main__" and getattr(sys.modules.get(module), name, None) is value:
        pickler.by_reference.add(id(value))
        return name
    node = as_node(pickler, value)
    if node is not None:
        return node
    return (rebuild_parameter, (type(value), value.__name__, module))


@rebuilder
def rebuild_parameter(kind: Any, name: str, module: str) -> Any:
    """Make a parameter specification or a variadic type variable."""
    made = kind(name)
    try:
        made.__module__ = module
    except AttributeError:
        pass
    return made


EXACT[typing.ParamSpec] = reduce_parameter
EXACT[typing.TypeVarTuple] = reduce_parameter


@reduces("typing.TypeAliasType")
def reduce_alias(_pickler: StatePickler, value: Any) -> Any:
    """Save a type alias with its value."""
    return (rebuild_alias, (value.__name__, value.__value__, value.__type_params__))


@rebuilder
def rebuild_alias(name: str, value: Any, parameters: tuple[Any, ...]) -> Any:
    """Make a type alias."""
    return typing.TypeAliasType(name, value, type_params=parameters)  # type: ignore[attr-defined]

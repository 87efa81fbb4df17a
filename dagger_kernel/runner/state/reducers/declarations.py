"""What stands in class bodies and annotations: properties, enum members, type variables, aliases."""

from __future__ import annotations

import enum
import sys
import typing
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..pickler import rebuild_node
from ..rebuild import rebuilder
from .functions import importable_name
from .instances import reduce_instance

if TYPE_CHECKING:
    from ..pickler import StatePickler


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


# --- annotations --------------------------------------------------------------------------


def _as_node(pickler: StatePickler, value: Any) -> Any:
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
    node = _as_node(pickler, value)
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
    node = _as_node(pickler, value)
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


@reduces(typing.ParamSpec, typing.TypeVarTuple)
def reduce_parameter(pickler: StatePickler, value: Any) -> Any:
    """Save a parameter specification or a variadic type variable of the notebook."""
    module = getattr(value, "__module__", "")
    name = str(value.__name__)
    if module != "__main__" and getattr(sys.modules.get(module), name, None) is value:
        pickler.by_reference.add(id(value))
        return name
    node = _as_node(pickler, value)
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


@reduces("typing.TypeAliasType")
def reduce_alias(_pickler: StatePickler, value: Any) -> Any:
    """Save a type alias with its value."""
    return (rebuild_alias, (value.__name__, value.__value__, value.__type_params__))


@rebuilder
def rebuild_alias(name: str, value: Any, parameters: tuple[Any, ...]) -> Any:
    """Make a type alias."""
    return typing.TypeAliasType(name, value, type_params=parameters)  # type: ignore[attr-defined]

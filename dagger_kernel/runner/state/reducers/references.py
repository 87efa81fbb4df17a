"""Objects which show or name another one: views, ``super()``, weak references and containers."""

from __future__ import annotations

import collections
import gc
import types
import weakref
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler


@reduces(types.MappingProxyType)
def reduce_proxy(_pickler: StatePickler, value: Any) -> Any:
    """Save a mapping proxy as a proxy of the same mapping."""
    inner = gc.get_referents(value)[0]
    if isinstance(inner, type):
        return (vars, (inner,))
    # A class's own dictionary cannot be taken hold of; its proxy is `vars(cls)`.
    for content in list(inner.values()) if type(inner) is dict and "__module__" in inner else ():
        owner = getattr(content, "__objclass__", None)
        if isinstance(owner, type) and gc.get_referents(vars(owner))[0] is inner:
            return (vars, (owner,))
    return (types.MappingProxyType, (inner,))


_ordered: Any = collections.OrderedDict()


@reduces(
    *map(type, ({}.keys(), {}.values(), {}.items())),
    *map(type, (_ordered.keys(), _ordered.values(), _ordered.items())),
)
def reduce_view(_pickler: StatePickler, value: Any) -> Any:
    """Save a dictionary view as a view of the same dictionary."""
    owner = value.mapping
    inner = gc.get_referents(owner)[0]
    return (getattr(type(inner), type(value).__name__.partition("_")[2]), (inner,))


@reduces(memoryview)
def reduce_memoryview(_pickler: StatePickler, value: memoryview) -> Any:
    """Save a memory view as a view of the same object."""
    try:
        owner = value.obj
    except ValueError:
        return (rebuild_released, ())
    if value.ndim == 1 and value.contiguous and value.nbytes and owner is not None:
        from ..memory import address_of

        offset = address_of(value) - address_of(memoryview(owner))
        return (rebuild_memoryview, (owner, offset, value.nbytes, value.format, value.readonly))
    whole = memoryview(owner)
    if (whole.shape, whole.strides, whole.format) == (value.shape, value.strides, value.format):
        return (memoryview, (owner,))
    raise CannotPersistError("a memory view with steps cannot be saved")


@rebuilder
def rebuild_memoryview(owner: Any, offset: int, size: int, kind: str, readonly: bool) -> memoryview:
    """Make a view of part of an object."""
    view = memoryview(owner).cast("B")[offset : offset + size]
    if kind != "B":
        view = view.cast(kind)  # type: ignore[call-overload]
    return view.toreadonly() if readonly and not view.readonly else view


@rebuilder
def rebuild_released() -> memoryview:
    """Make a released view."""
    view = memoryview(b"")
    view.release()
    return view


@reduces(super)
def reduce_super(_pickler: StatePickler, value: Any) -> Any:
    """Save a ``super()`` object, whose own attributes hide behind those it looks up."""
    cls: Any = vars(super)["__thisclass__"].__get__(value)
    target = vars(super)["__self__"].__get__(value)
    return (super, (cls,) if target is None else (cls, target))


@reduces(weakref.ReferenceType)
def reduce_weakref(_pickler: StatePickler, value: Any) -> Any:
    """Save a weak reference: to the same object, which is saved with it."""
    target = value()
    if target is None:
        return (rebuild_dead_reference, ())
    return (weakref.ref, (target,) if value.__callback__ is None else (target, value.__callback__))


@rebuilder
def rebuild_dead_reference() -> Any:
    """Make a weak reference whose object is gone."""
    return weakref.ref(_Gone())


class _Gone:
    """Dies at once."""


@reduces("weakref.KeyedRef", "weakref.WeakMethod")
def reduce_keyed(_pickler: StatePickler, value: Any) -> Any:
    """Refuse the parts of weak containers; the containers rebuild them."""
    if type(value).__name__ == "WeakMethod" and value() is not None:
        return (weakref.WeakMethod, (value(),))
    raise CannotPersistError("it belongs to a weak dictionary")


@reduces("weakref.WeakValueDictionary", "weakref.WeakKeyDictionary")
def reduce_weak_mapping(_pickler: StatePickler, value: Any) -> Any:
    """Save a weak dictionary with what is alive in it."""
    return (type(value), (), None, None, iter(list(value.items())))


@reduces("_weakrefset.WeakSet")
def reduce_weak_set(_pickler: StatePickler, value: Any) -> Any:
    """Save a weak set with what is alive in it."""
    return (type(value), (list(value),))


@reduces("weakref.ProxyType", "weakref.CallableProxyType")
def reduce_weak_proxy(_pickler: StatePickler, value: Any) -> Any:
    """Save a weak proxy."""
    try:
        return (weakref.proxy, (value.__reduce_ex__.__self__,))
    except ReferenceError:
        return (rebuild_dead_proxy, ())


@rebuilder
def rebuild_dead_proxy() -> Any:
    """Make a weak proxy whose object is gone."""
    return weakref.proxy(_Gone())

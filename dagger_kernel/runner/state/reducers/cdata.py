"""What ``ctypes`` makes: array and pointer types, pointers, loaded libraries."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler

_LAYOUT = ("_pack_", "_anonymous_", "_align_", "_layout_", "_swappedbytes_", "_fields_", "_type_",
           "_length_")  # fmt: skip


def ctypes_base() -> Any:
    """Give the base class of all types of ctypes; nothing while it is not imported."""
    module = sys.modules.get("_ctypes")
    return module.Structure.__base__ if module is not None else ()


def ctypes_type(cls: Any) -> Any:
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


def layout_of(cls: type) -> dict[str, Any]:
    """Give the attributes which a class of ctypes must have from the start; none for others."""
    content = vars(cls) if issubclass(cls, ctypes_base()) else {}
    return {name: content[name] for name in _LAYOUT if name in content}


def is_layout(cls: type, name: str, value: Any) -> bool:
    """Whether an attribute stands for the layout, which is made with the class."""
    return _is_field(value) or (name in _LAYOUT and any(map(_is_field, vars(cls).values())))


def _is_field(value: Any) -> bool:
    return type(value).__name__ == "CField"


@rebuilder
def rebuild_ctypes_array(kind: Any, length: int) -> Any:
    """Make a ctypes array type."""
    return kind * length


@reduces("_ctypes._Pointer")
def reduce_pointer(_pickler: StatePickler, value: Any) -> Any:
    """Save a ctypes pointer with what it points at."""
    if not value:
        return (type(value), ())
    kept = value._objects
    target = kept.get("1") if isinstance(kept, dict) else None
    if target is None:
        raise CannotPersistError("it points to memory which Python does not own")
    return (type(value), (target,))


@reduces("ctypes.CDLL")
def reduce_library(_pickler: StatePickler, value: Any) -> Any:
    """Save a loaded C library as its name, with the types its functions were told."""
    functions = {
        name: (item.restype, item.argtypes)
        for name, item in vars(value).items()
        if isinstance(item, value._FuncPtr)
    }
    return (rebuild_library, (type(value), value._name), functions, None, None, restore_library)


@rebuilder
def rebuild_library(kind: Any, name: str | None) -> Any:
    """Load a C library."""
    return kind(name)


@rebuilder
def restore_library(library: Any, functions: dict[str, tuple[Any, Any]]) -> None:
    """Tell a library's functions their types."""
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments

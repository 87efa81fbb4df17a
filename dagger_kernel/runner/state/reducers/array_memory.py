"""The memory of NumPy arrays is saved once, and views of it stay views.

An array is either the owner of its memory, or a view of an owner. The owner may
also be a plain buffer, which is what arrays restored from a mapped file have. A
view is saved as its owner and the place in it, so that writing through one is
seen through the other, in the same cell and in all later ones.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler

INTERFACES = ("DummyArray", "_Interface")
"""What `as_strided`, and restoring a view, leave between an array and the one it looks into."""


def reduce_memory(pickler: StatePickler, array: Any, holder: Any) -> Any:
    """Save a plain array which `holder` (its base) keeps the memory of."""
    import numpy as np

    base = holder
    while type(base).__name__ in INTERFACES:
        base = base.base
    if base is None or id(array) in pickler.detached or array.nbytes == 0:
        return _owner(array)
    if isinstance(base, np.ndarray):
        # Only this view holds its base: nobody can see whether they share memory.
        if base is array.base and _is_sole_view(array):
            return _owner(array)
        return reduce_view_of(array, base)
    owner = base.obj if isinstance(base, memoryview) else base
    if isinstance(owner, ctypes.Array | bytearray | bytes) or type(owner).__name__ == "mmap":
        return _view_of_buffer(array, owner)
    if type(owner).__module__ == "array":
        return _view_of_buffer(array, owner)
    return _owner(array)


def _is_sole_view(array: Any) -> bool:
    """Whether nothing but this view refers to its base, and it covers most of it."""
    base = array.base
    # References: the view's own, those of the callers, this variable and the argument.
    return bool(sys.getrefcount(base) <= 5 and base.base is None and 0 not in array.strides)


def _owner(array: Any) -> Any:
    """Save memory and layout of an array which owns its memory."""
    import numpy as np

    order = "C"
    flat = array
    if array.nbytes:
        if array.flags.c_contiguous:
            pass
        elif array.flags.f_contiguous:
            order, flat = "F", array.T
        else:
            flat = np.ascontiguousarray(array)
    raw = flat.reshape(-1).view(np.uint8) if array.nbytes and array.dtype.itemsize else b""
    data = pickle.PickleBuffer(raw) if array.nbytes >= 1024 else bytes(raw)
    return (rebuild_array, (data, array.dtype, array.shape, order, bool(array.flags.writeable)))


@rebuilder
def rebuild_array(
    data: Any, dtype: Any, shape: tuple[int, ...], order: str, writeable: bool
) -> Any:
    """Make an array over its saved memory."""
    import numpy as np

    if not memoryview(data):
        made = np.empty(shape, dtype)
    elif isinstance(data, bytes) or memoryview(data).readonly:
        made = np.empty(shape, dtype, order=order)  # type: ignore[call-overload]
        made.reshape(-1, order=order).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
    else:
        made = np.ndarray(shape, dtype, data, 0, None, order)  # type: ignore[arg-type]
    if not writeable:
        made.flags.writeable = False
    return made


def reduce_view_of(array: Any, base: Any) -> Any:
    """Save an array as a view of another one."""
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return (
        rebuild_view,
        (base, array.dtype, array.shape, array.strides, offset, bool(array.flags.writeable)),
    )


def _view_of_buffer(array: Any, owner: Any) -> Any:
    from ..memory import address_of

    offset = array.__array_interface__["data"][0] - address_of(memoryview(owner).cast("B"))
    return (
        rebuild_view,
        (owner, array.dtype, array.shape, array.strides, offset, bool(array.flags.writeable)),
    )


@rebuilder
def rebuild_view(
    base: Any,
    dtype: Any,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    writeable: bool,
) -> Any:
    """Make a view of an array or buffer."""
    import numpy as np

    if not isinstance(base, np.ndarray):
        made = np.ndarray(shape, dtype, base, offset, strides)
    elif writeable and not base.flags.writeable:
        # The view was made before its base was closed to writing, which closes no view.
        base.flags.writeable = True
        made = _view_of_array(base, dtype, shape, strides, offset)
        base.flags.writeable = False
    else:
        made = _view_of_array(base, dtype, shape, strides, offset)
    if not writeable:
        made.flags.writeable = False
    return made


def _view_of_array(base: Any, dtype: Any, shape: Any, strides: Any, offset: int) -> Any:
    import numpy as np

    base = base.view(np.ndarray)
    flat = base.T if base.flags.f_contiguous and not base.flags.c_contiguous else base
    if flat.flags.c_contiguous and not dtype.hasobject and not base.dtype.hasobject:
        # The new array's base is `base` itself, as it is for a slice.
        return np.ndarray(shape, dtype, flat.reshape(-1).view(np.uint8), offset, strides)
    made = np.asarray(_Interface(base, dtype, shape, strides, offset))
    return made if made.dtype == dtype or dtype.hasobject else made.view(dtype)


class _Interface:
    """Describes memory inside another array to NumPy."""

    def __init__(self, base: Any, dtype: Any, shape: Any, strides: Any, offset: int) -> None:
        interface = dict(base.__array_interface__)
        address, readonly = interface["data"]
        self.base = base
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": dtype.str,
            "data": (address + offset, readonly),
        }
        if dtype.names:
            self.__array_interface__["descr"] = dtype.descr


@reduces("_ctypes.Array")
def reduce_segment(_pickler: StatePickler, value: Any) -> Any:
    """Save the memory under restored arrays as a buffer of its own."""
    if type(value)._type_ is ctypes.c_ubyte and len(value) >= 1024:
        return (rebuild_segment, (pickle.PickleBuffer(value),))
    return value.__reduce__()


@rebuilder
def rebuild_segment(data: Any) -> Any:
    """Give the buffer itself; arrays over it share it."""
    if isinstance(data, ctypes.Array):
        return data
    copy = data if isinstance(data, bytearray) else bytearray(data)
    return (ctypes.c_ubyte * len(copy)).from_buffer(copy)

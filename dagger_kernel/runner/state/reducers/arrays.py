"""NumPy arrays: memory is saved once, and views stay views.

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

from ..pickler import EXACT, reduces
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler

_RAW_KINDS = frozenset("biufcmMSUV")


@reduces("numpy.ndarray")
def reduce_array(pickler: StatePickler, array: Any) -> Any:
    """Save an array as an owner or as a view."""
    import numpy as np

    kind = type(array)
    if kind is np.memmap:
        return reduce_memmap(pickler, array)
    if kind is not np.ndarray:
        return _reduce_subclass(pickler, array)
    if array.dtype.hasobject or array.dtype.kind not in _RAW_KINDS:
        holder = array.base
        while type(holder).__name__ in ("DummyArray", "_Interface"):
            holder = holder.base
        if isinstance(holder, np.ndarray):
            return _view(array, holder)
        return _reduce_object_array(array)
    return _memory(pickler, array, array.base)


def _memory(pickler: StatePickler, array: Any, holder: Any) -> Any:
    """Save a plain array which `holder` (its base) keeps the memory of."""
    import numpy as np

    base = holder
    while type(base).__name__ in ("DummyArray", "_Interface"):  # what `as_strided` leaves
        base = base.base
    if base is None or id(array) in pickler.detached or array.nbytes == 0:
        return _owner(array)
    if isinstance(base, np.ndarray):
        # Only this view holds its base: nobody can see whether they share memory.
        if base is array.base and _is_sole_view(array):
            return _owner(array)
        return _view(array, base)
    owner = base.obj if isinstance(base, memoryview) else base
    if isinstance(owner, ctypes.Array | bytearray | bytes) or type(owner).__name__ == "mmap":
        return _view_of_buffer(array, owner)
    if type(owner).__module__ == "array":
        return _view_of_buffer(array, owner)
    return _owner(array)


class Plain:
    """The memory of an instance of an array subclass, as a plain array."""

    def __init__(self, array: Any) -> None:
        self.array = array


def reduce_plain(pickler: StatePickler, value: Plain) -> Any:
    """Save the memory under an array subclass."""
    import numpy as np

    return _memory(pickler, value.array.view(np.ndarray), value.array.base)


EXACT[Plain] = reduce_plain


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


def _view(array: Any, base: Any) -> Any:
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

    if isinstance(base, np.ndarray):
        made = _view_of_array(base, dtype, shape, strides, offset)
    else:
        made = np.ndarray(shape, dtype, base, offset, strides)
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


def _reduce_object_array(array: Any) -> Any:
    """Save an array of objects by its own protocol."""
    return array.__reduce_ex__(2)


@reduces("_ctypes.Array")
def reduce_segment(pickler: StatePickler, value: Any) -> Any:
    """Save the memory under restored arrays as a buffer of its own."""
    if type(value)._type_ is ctypes.c_ubyte and len(value) >= 1024:
        del pickler
        return (rebuild_segment, (pickle.PickleBuffer(value),))
    return value.__reduce__()


@rebuilder
def rebuild_segment(data: Any) -> Any:
    """Give the buffer itself; arrays over it share it."""
    if isinstance(data, ctypes.Array):
        return data
    copy = data if isinstance(data, bytearray) else bytearray(data)
    return (ctypes.c_ubyte * len(copy)).from_buffer(copy)


def _reduce_subclass(pickler: StatePickler, array: Any) -> Any:
    """Save a matrix, a record array or the like with its attributes."""
    import numpy as np

    kind = type(array)
    own: Any = kind.__reduce__
    if own is not np.ndarray.__reduce__:
        return (
            _reduce_masked(pickler, array)
            if isinstance(array, np.ma.MaskedArray)
            else array.__reduce__()
        )
    plain = Plain(array)
    del pickler
    state = getattr(array, "__dict__", None) or None
    if state is None:
        return (rebuild_subclass, (kind, plain))
    return (rebuild_subclass, (kind, plain), state, None, None, restore_masked)


@rebuilder
def rebuild_subclass(kind: type, plain: Any) -> Any:
    """See an array as a subclass."""
    return plain.view(kind)


def _reduce_masked(_pickler: StatePickler, array: Any) -> Any:
    """Save a masked array as data and mask."""
    import numpy as np

    state = {
        k: v
        for k, v in vars(array).items()
        if k not in ("_mask", "_data", "_baseclass", "_optinfo")
    }
    state["_optinfo"] = dict(getattr(array, "_optinfo", None) or {})
    mask = array._mask
    data = Plain(array)
    return (rebuild_masked, (type(array), data, None if mask is np.ma.nomask else mask), state,
            None, None, restore_masked)  # fmt: skip


@rebuilder
def rebuild_masked(kind: type, data: Any, mask: Any) -> Any:
    """Make a masked array."""
    import numpy as np

    made = data.view(kind)
    made._mask = np.ma.nomask if mask is None else mask
    return made


@rebuilder
def restore_masked(array: Any, state: dict[str, Any]) -> None:
    """Set what a masked array carries."""
    vars(array).update(state)


@reduces("numpy.memmap")
def reduce_memmap(_pickler: StatePickler, array: Any) -> Any:
    """Save a memory-mapped array as its file and place."""
    import numpy as np

    if array.filename is None or array._mmap is None:
        return (rebuild_subclass, (np.ndarray, np.array(array)))
    array.flush()
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    if array is not base and isinstance(base, np.memmap):
        return (rebuild_memmap_view, (base, array.dtype, array.shape, array.strides, offset))
    mode = "r+" if array.mode == "w+" else array.mode
    if mode == "c":
        return (rebuild_subclass, (np.ndarray, np.array(array)))
    order = "C" if array.flags.c_contiguous else "F"
    return (
        rebuild_memmap,
        (str(array.filename), array.dtype, mode, array.offset, array.shape, order),
    )


@rebuilder
def rebuild_memmap(path: str, dtype: Any, mode: Any, offset: int, shape: Any, order: Any) -> Any:
    """Map the file again."""
    import numpy as np

    return np.memmap(path, dtype, mode, offset, shape, order)


@rebuilder
def rebuild_memmap_view(base: Any, dtype: Any, shape: Any, strides: Any, offset: int) -> Any:
    """Make a view of a mapped array."""
    import numpy as np

    return rebuild_view(base.view(np.ndarray), dtype, shape, strides, offset, True).view(type(base))

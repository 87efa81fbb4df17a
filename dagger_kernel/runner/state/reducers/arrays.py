"""NumPy arrays, the subclasses of its array, and arrays mapped from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..rebuild import rebuilder
from .array_memory import INTERFACES, rebuild_view, reduce_memory, reduce_view_of

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
        return _reduce_subclass(array)
    if array.dtype.hasobject or array.dtype.kind not in _RAW_KINDS:
        holder = array.base
        while type(holder).__name__ in INTERFACES:
            holder = holder.base
        if isinstance(holder, np.ndarray):
            return reduce_view_of(array, holder)
        return array.__reduce_ex__(2)  # its own protocol knows the objects in it
    return reduce_memory(pickler, array, array.base)


class Plain:
    """The memory of an instance of an array subclass, as a plain array."""

    def __init__(self, array: Any) -> None:
        self.array = array


@reduces(Plain)
def reduce_plain(pickler: StatePickler, value: Plain) -> Any:
    """Save the memory under an array subclass."""
    import numpy as np

    return reduce_memory(pickler, value.array.view(np.ndarray), value.array.base)


def _reduce_subclass(array: Any) -> Any:
    """Save a matrix, a record array or the like with its attributes."""
    import numpy as np

    kind = type(array)
    own: Any = kind.__reduce__
    if own is not np.ndarray.__reduce__:
        return _reduce_masked(array) if isinstance(array, np.ma.MaskedArray) else array.__reduce__()
    plain = Plain(array)
    state = getattr(array, "__dict__", None) or None
    if state is None:
        return (rebuild_subclass, (kind, plain))
    return (rebuild_subclass, (kind, plain), state, None, None, restore_masked)


@rebuilder
def rebuild_subclass(kind: type, plain: Any) -> Any:
    """See an array as a subclass."""
    return plain.view(kind)


def _reduce_masked(array: Any) -> Any:
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

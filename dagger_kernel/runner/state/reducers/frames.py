"""pandas, polars and pyarrow.

pandas lets frames share memory until one of them is written to. Which blocks
share is tracked in the blocks; pickling forgets it, and then a write to one
frame would show in another. It is saved and tracked again here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..rebuild import rebuilder
from .foreign import reduce_foreign

if TYPE_CHECKING:
    from ..pickler import StatePickler


@reduces("pandas._libs.internals.Block")
def reduce_block(pickler: StatePickler, block: Any) -> Any:
    """Save a block of a frame with the record of who shares its memory."""
    placement = block.mgr_locs
    where = placement.as_slice if placement.is_slice_like else placement.as_array
    if _copies_on_write():
        memory: Any = block.values
        while memory is not None:
            pickler.copy_on_write.add(id(memory))
            memory = getattr(memory, "base", None)
        pickler.copy_on_write.add(id(block.refs))
    pickler.modules.add("pandas")
    return (rebuild_block, (type(block), block.values, where, block.ndim, block.refs))


def _copies_on_write() -> bool:
    """Whether this pandas copies before it writes to shared memory, as all do since 3.0."""
    import pandas as pd

    if int(pd.__version__.partition(".")[0]) >= 3:
        return True
    return pd.options.mode.copy_on_write is True


@rebuilder
def rebuild_block(kind: Any, values: Any, where: Any, ndim: int, refs: Any) -> Any:
    """Make a block."""
    from pandas._libs.internals import BlockPlacement

    return kind(values, BlockPlacement(where), ndim=ndim, refs=refs)


@reduces("pandas.core.internals.managers.SingleBlockManager")
def reduce_single_manager(pickler: StatePickler, manager: Any) -> Any:
    """Save the manager of a series; its own protocol would unpack the block."""
    pickler.modules.add("pandas")
    return (rebuild_single_manager, (type(manager), manager.blocks[0], manager.axes[0]))


@rebuilder
def rebuild_single_manager(kind: Any, block: Any, axis: Any) -> Any:
    """Make the manager of a series."""
    return kind(block, axis, verify_integrity=False)


@reduces("pandas._libs.internals.BlockValuesRefs")
def reduce_refs(_pickler: StatePickler, value: Any) -> Any:
    """Save the identity of a sharing record; blocks and indexes enter themselves again."""
    return (rebuild_refs, (type(value),))


@rebuilder
def rebuild_refs(kind: Any) -> Any:
    """Make an empty sharing record."""
    return kind()


@reduces("pandas.core.generic.NDFrame")
def reduce_frame(pickler: StatePickler, frame: Any) -> Any:
    """Save a frame or series; a list that belongs to its class links it with no other."""
    pickler.unlinked.append(type(frame)._metadata)
    return reduce_foreign(pickler, frame)


@reduces("pandas.core.indexes.base.Index", "pandas.Index")
def reduce_index(pickler: StatePickler, index: Any) -> Any:
    """Save an index; its data never changes, so sharing it links nothing."""
    from pandas.core.indexes.base import _new_Index

    recipe = index.__reduce__()
    pickler.modules.add("pandas")
    if recipe[0] is not _new_Index or not isinstance(recipe[1][1], dict):
        return reduce_foreign(pickler, index)
    content = recipe[1][1]
    for value in content.values():
        pickler.unlinked.append(value)
        pickler.detached.add(id(value))
        inner = getattr(value, "_ndarray", None)
        if inner is not None:
            pickler.unlinked.append(inner)
            pickler.detached.add(id(inner))
    return (rebuild_index, recipe[1])


@rebuilder
def rebuild_index(kind: Any, content: dict[str, Any]) -> Any:
    """Make an index."""
    from pandas.core.indexes.base import _new_Index

    return _new_Index(kind, content)


@reduces("pandas.core.arrays.string_.StringDtype", "pandas.StringDtype")
def reduce_string_dtype(pickler: StatePickler, dtype: Any) -> Any:
    """Save the type of text columns, which every frame has for its labels, without the NaN it holds."""
    import numpy as np

    if dtype.na_value is not np.nan:  # noqa: PLW0177 - that very object is meant
        return reduce_foreign(pickler, dtype)
    pickler.modules.add("pandas")
    return (rebuild_string_dtype, (type(dtype), dtype.storage))


@rebuilder
def rebuild_string_dtype(kind: Any, storage: str) -> Any:
    """Make the type of text columns with NumPy's NaN for missing values."""
    import numpy as np

    return kind(storage, np.nan)


@reduces("polars.dataframe.frame.DataFrame", "polars.series.series.Series")
def reduce_polars(pickler: StatePickler, value: Any) -> Any:
    """Save a polars frame through Arrow, whose buffers need no copy; as it is if Arrow is not there."""
    pickler.modules.add("polars")
    if type(value).__module__.partition(".")[0] != "polars":
        return reduce_foreign(pickler, value)
    try:
        import pyarrow as pa  # noqa: F401 - `to_arrow` needs it

        if any(
            str(kind) == "Object"
            for kind in getattr(value, "dtypes", [getattr(value, "dtype", "")])
        ):
            return reduce_foreign(pickler, value)
        arrow = value.to_arrow()
        schema = dict(value.schema) if hasattr(value, "schema") else value.dtype
        name = getattr(value, "name", None)
    except Exception:
        return reduce_foreign(pickler, value)
    return (rebuild_polars, (type(value), arrow, schema, name))


@rebuilder
def rebuild_polars(_kind: Any, arrow: Any, schema: Any, name: Any) -> Any:
    """Make a polars frame over Arrow memory."""
    import polars as pl

    made = pl.from_arrow(arrow)
    if isinstance(made, pl.DataFrame):
        return made.cast(schema) if dict(made.schema) != schema else made
    if made.dtype != schema:
        made = made.cast(schema)
    return made.alias(name)

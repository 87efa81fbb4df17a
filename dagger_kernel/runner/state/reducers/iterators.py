"""Iterators of the standard library.

Python 3.14 no longer pickles those of ``itertools``, and warns before. They are
taken apart here; what cannot be taken apart is lost and reported.
"""

from __future__ import annotations

import gc
import itertools
import re
import types
import warnings
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..lost import LostObject

if TYPE_CHECKING:
    from ..pickler import StatePickler

_LIVE = (types.CoroutineType, types.AsyncGeneratorType, LostObject)

_NAMES = ("accumulate", "batched", "chain", "combinations", "combinations_with_replacement",
          "compress", "count", "cycle", "dropwhile", "filterfalse", "groupby", "islice", "pairwise",
          "permutations", "product", "repeat", "starmap", "takewhile", "zip_longest")  # fmt: skip


@reduces(map, filter, zip, enumerate, reversed)
def reduce_builtin_iterator(_pickler: StatePickler, value: Any) -> Any:
    """Save an iterator of the builtins."""
    return _checked(value.__reduce__())


def reduce_itertool(_pickler: StatePickler, value: Any) -> Any:
    """Save an iterator of ``itertools``."""
    if type(value) is itertools.count:
        # Its text is exact for the numbers it is used with, on every version.
        found = re.fullmatch(r"count\((-?\d+)(?:, (-?\d+))?\)", repr(value))
        if found is not None:
            return (
                itertools.count,
                tuple(int(part) for part in found.groups() if part is not None),
            )
    if type(value) is itertools.repeat:
        item = gc.get_referents(value)[-1]
        try:
            return (itertools.repeat, (item, value.__length_hint__()))
        except TypeError:
            return (itertools.repeat, (item,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _checked(value.__reduce__())
        except TypeError:
            raise CannotPersistError("its position cannot be read; make a list of it") from None


for _name in _NAMES:
    if hasattr(itertools, _name):
        reduces(getattr(itertools, _name))(reduce_itertool)
reduces("itertools._grouper", "itertools._tee_dataobject", "itertools._tee")(reduce_itertool)


def _checked(recipe: Any) -> Any:
    """Refuse a recipe which would run an iterator that is lost."""
    for argument in recipe[1]:
        if isinstance(argument, _LIVE):
            raise CannotPersistError("it draws from an iterator which cannot be saved")
    return recipe


@reduces(itertools.tee(())[0].__class__)
def reduce_tee(_pickler: StatePickler, value: Any) -> Any:
    """Save one of the iterators of a ``tee``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return value.__reduce__()
        except (TypeError, AttributeError):
            raise CannotPersistError("its position cannot be read; make a list of it") from None

"""Numbers which are not equal to themselves: whether two names hold the same one can be seen.

``nan in [nan]`` is true for one object only, so such a number is shared like a list. The C pickler
writes every float anew and asks nobody; only where a dump has such a number it is done again, with
a question for each object.
"""

from __future__ import annotations

import struct
from math import isnan
from typing import Any

from .dispatch import reduces
from .pickler import StatePickler
from .rebuild import rebuilder

_WRITTEN = (b"G\x7f\xf8\0\0\0\0\0\0", b"G\xff\xf8\0\0\0\0\0\0")
"""How pickle writes the usual ones."""


def holds_unequal(pickle: bytes) -> bool:
    """Whether a pickle may hold a float which is not equal to itself."""
    return any(written in pickle for written in _WRITTEN)


def is_unequal(value: Any) -> bool:
    """Whether a number is not equal to itself."""
    kind = type(value)
    if kind is float or kind is complex:
        return isnan(value.real) or isnan(value.imag)
    if kind.__name__ == "Decimal" and kind.__module__ == "decimal":
        return bool(value.is_nan())  # a signalling one may not even be compared
    return False


class Unequal:
    """Stands for one such float in a pickle."""

    def __init__(self, value: float) -> None:
        self.value = value


class SharingPickler(StatePickler):
    """Writes every float which is not equal to itself once."""

    def persistent_id(self, value: Any) -> Unequal | None:
        if type(value) is not float or not isnan(value):
            return None
        found = self.unequal.get(id(value))
        if found is None:
            found = self.unequal[id(value)] = Unequal(value)
        return found


@reduces(Unequal)
def reduce_unequal(pickler: StatePickler, stand_in: Unequal) -> Any:
    """Save the float by name, where a library has it, or by its bits."""
    place = pickler.registry.singletons.get(id(stand_in.value))
    if place is not None:
        return pickler.by_name(stand_in.value, *place)
    return (rebuild_unequal, (struct.pack(">d", stand_in.value),))


@rebuilder
def rebuild_unequal(bits: bytes) -> float:
    """Make the float."""
    found: float = struct.unpack(">d", bits)[0]
    return found

"""The stand-in for an object which could not be carried to a later cell.

A stand-in may sit anywhere in a restored structure. It can be moved, compared
by identity, hashed and shown, so that the structure around it stays usable;
every other use raises :class:`StateLostError`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .errors import StateLostError

refused: dict[str, str] = {}
"""Why variables could not be made again in this cell."""


class LostObject:
    """Stands for an object which could not be saved.

    Parameters
    ----------
    name, type_name, reason, cell
        As in :class:`StateLostError`.
    """

    __slots__ = ("__weakref__", "_lost")

    def __init__(self, name: str, type_name: str, reason: str, cell: int) -> None:
        object.__setattr__(self, "_lost", (name, type_name, reason, cell))

    def __getattr__(self, attribute: str) -> NoReturn:
        raise lost_error(self)

    def __setattr__(self, attribute: str, value: Any) -> NoReturn:
        raise lost_error(self)

    def __delattr__(self, attribute: str) -> NoReturn:
        raise lost_error(self)

    def __repr__(self) -> str:
        _, type_name, _, cell = lost_details(self)
        again = f"; run cell [{cell}] again" if cell > 0 else ""
        return f"<lost {type_name}{again}>"


def lost_details(stand_in: LostObject) -> tuple[str, str, str, int]:
    """Give name, type name, reason and cell of a stand-in."""
    details: tuple[str, str, str, int] = object.__getattribute__(stand_in, "_lost")
    return details


def lost_error(stand_in: LostObject) -> StateLostError:
    """Make the error which using the stand-in raises."""
    name, type_name, reason, cell = lost_details(stand_in)
    if name in refused:
        reason += f"; it cannot be made again: {refused[name]}"
    return StateLostError(name, type_name, reason, cell)


def _refuse(self: LostObject, *_args: Any, **_kwargs: Any) -> NoReturn:
    __tracebackhide__ = True
    raise lost_error(self)


_OPERATIONS = (
    "call iter next await aiter anext enter exit aenter aexit len bool contains getitem setitem "
    "delitem reversed length_hint int float complex index str bytes format round trunc floor ceil "
    "neg pos invert abs lt le gt ge dir fspath buffer missing copy deepcopy reduce reduce_ex "
    "add radd iadd sub rsub isub mul rmul imul matmul rmatmul imatmul truediv rtruediv itruediv "
    "floordiv rfloordiv ifloordiv mod rmod imod divmod rdivmod pow rpow ipow lshift rlshift "
    "ilshift rshift rrshift irshift and rand iand or ror ior xor rxor ixor"
)
for _operation in _OPERATIONS.split():
    setattr(LostObject, f"__{_operation}__", _refuse)

"""Objects compiled from text, saved as that text: matches of patterns, structs, JSON scanners."""

from __future__ import annotations

import re
import types
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler


@reduces(re.Match)
def reduce_match(_pickler: StatePickler, value: re.Match[Any]) -> Any:
    """Save a match as the search that gives it."""
    pattern, string = value.re, value.string
    wanted = (value.span(), value.regs)
    attempts = [("match", value.pos, value.endpos), ("search", value.pos, value.endpos),
                ("fullmatch", value.pos, value.endpos), ("match", value.start(), value.endpos),
                ("fullmatch", value.start(), value.end())]  # fmt: skip
    for method, start, stop in attempts:
        found = getattr(pattern, method)(string, start, stop)
        if found is not None and (found.span(), found.regs) == wanted:
            return (rebuild_match, (pattern, method, string, start, stop))
    raise CannotPersistError("the search that made it cannot be repeated")


@rebuilder
def rebuild_match(pattern: re.Pattern[Any], method: str, string: Any, start: int, stop: int) -> Any:
    """Search again."""
    return getattr(pattern, method)(string, start, stop)


@reduces("_struct.Struct")
def reduce_struct(_pickler: StatePickler, value: Any) -> Any:
    """Save a compiled struct as its format."""
    return (type(value), (value.format,))


@reduces("_json.Scanner")
def reduce_scanner(_pickler: StatePickler, value: Any) -> Any:
    """Save the C part of a JSON decoder as its options."""
    names = (
        "strict",
        "object_hook",
        "object_pairs_hook",
        "parse_float",
        "parse_int",
        "parse_constant",
    )
    return (rebuild_scanner, ({name: getattr(value, name) for name in names},))


@rebuilder
def rebuild_scanner(options: dict[str, Any]) -> Any:
    """Make the C part of a JSON decoder."""
    from json.scanner import make_scanner

    return make_scanner(types.SimpleNamespace(memo={}, **options))  # type: ignore[arg-type]

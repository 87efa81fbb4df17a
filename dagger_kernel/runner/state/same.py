"""Tells whether two pickles hold the same, whichever equal strings are one object in memory.

Python interns the names in a class or an instance as it is made, and others as it is
loaded, so the first dump after a load may refer back to a string where the dump before
it wrote the string again. Nobody can notice: it is no change.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from typing import Any

LIMIT = 32 << 10
"""Larger pickles are not compared; it would cost more than writing them."""

_TEXT = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_GET = frozenset({"BINGET", "LONG_BINGET"})


def same_content(one: bytes, other: bytes) -> bool:
    """Whether two small pickles differ at most in which equal strings are shared."""
    if max(len(one), len(other)) > LIMIT:
        return False
    return all(a == b for a, b in _pairs(_canonical(one), _canonical(other)))


def _pairs(one: Iterator[Any], other: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    for item in one:
        yield item, next(other, None)
    yield None, next(other, None)


def _canonical(data: bytes) -> Iterator[tuple[str, Any]]:
    """Give the operations, with every string written out where it is used."""
    memo: list[Any] = []
    count = 0
    last: Any = None
    for opcode, argument, _ in pickletools.genops(data):
        name = opcode.name
        if name == "FRAME":
            continue
        if name == "MEMOIZE":
            if last is None:
                count += 1
            memo.append(count if last is None else last)
            continue
        found: Any = argument if name in _TEXT else None
        if name in _GET and isinstance(argument, int):
            found = memo[argument]
        last = found if isinstance(found, str) else None
        if last is not None:
            yield ("text", last)
        else:
            yield (name, found if found is not None else argument)

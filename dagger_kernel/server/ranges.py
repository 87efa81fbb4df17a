"""``Range`` headers (RFC 9110, section 14), one range of bytes."""

from __future__ import annotations

import re

_RANGE = re.compile(r"bytes\s*=\s*([0-9]{0,18})\s*-\s*([0-9]{0,18})\s*", re.IGNORECASE)


class UnsatisfiableRangeError(ValueError):
    """The range lies outside the content."""


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return first byte and length of the range asked for.

    None means: send everything. So it is when no range is asked for, and, as the RFC allows, when
    several are or the header is not understood.

    Raises
    ------
    UnsatisfiableRangeError
        The range has no byte of the content.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None:
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if not first:  # the last n bytes
        length = min(int(last), size)
        if length == 0:
            raise UnsatisfiableRangeError
        return size - length, length
    start = int(first)
    stop = min(int(last) + 1, size) if last else size
    if last and int(last) < start:
        return None  # malformed, to be ignored
    if start >= size:
        raise UnsatisfiableRangeError
    return start, stop - start

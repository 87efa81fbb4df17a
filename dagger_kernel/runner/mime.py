"""Make what displays produce fit the wire: JSON-able, and not too large."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from numbers import Integral, Real
from typing import Any

MAX_TRACEBACK = 64 * 1024
"""Characters of one error message, over all its lines."""


def jsonable(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON can hold it, the way Jupyter's session does.

    Bytes become base64, dates ISO text, NaN and infinities their names, unknown objects their text.
    """
    if value is None or isinstance(value, (bool, str)):
        return str(value) if type(value) is not str and isinstance(value, str) else value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else repr(number)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if depth > 200:
        return safe_text(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [jsonable(item, depth + 1) for item in value]
    return safe_text(value)


def clean(bundle: Any) -> dict[str, Any]:
    """Return a mime bundle or metadata as plain JSON; what needs no change is not copied."""
    if not isinstance(bundle, Mapping):
        return {}
    if all(type(key) is str and type(value) is str for key, value in bundle.items()):
        return dict(bundle)
    try:
        json.dumps(bundle, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return dict(jsonable(bundle))
    # Integer keys are legal for dumps, and become text on the wire in any case.
    return {str(key): value for key, value in bundle.items()}


def size(value: Any) -> int:
    """Return about how many bytes a mime value takes."""
    return len(value) if isinstance(value, str) else len(json.dumps(value))


def within(data: dict[str, Any], text_bytes: float, file_bytes: float) -> dict[str, Any]:
    """Cut a bundle to the step's limits.

    Plain text is cut with a notice (it counts as output); other forms that are larger than a file
    may be are left out, and the plain text says so.
    """
    kept: dict[str, Any] = {}
    left_out = []
    for kind, value in data.items():
        length = size(value)
        if kind == "text/plain" and isinstance(value, str):
            kept[kind] = cut(value, int(text_bytes))
        elif length > file_bytes:
            left_out.append(f"[{kind}: {length} bytes are more than the limit of {file_bytes:g}]")
        else:
            kept[kind] = value
    if left_out:
        kept["text/plain"] = "\n".join([str(kept.get("text/plain", "")), *left_out]).strip()
    return kept


def cut(text: str, limit: int) -> str:
    """Cut text to a number of characters, with a notice in its place."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit} more characters are cut: the limit is {limit}]"


def cut_traceback(lines: list[str]) -> list[str]:
    """Cut a traceback in its middle when it is too long; the first and the last lines tell most."""
    lines = [cut(line, MAX_TRACEBACK // 4) for line in lines]
    if sum(map(len, lines)) <= MAX_TRACEBACK:
        return lines
    head: list[str] = []
    tail: list[str] = []
    room = MAX_TRACEBACK
    for index in range(len(lines)):
        side, line = (head, lines[index // 2]) if index % 2 == 0 else (tail, lines[-1 - index // 2])
        room -= len(line)
        if room < 0:
            break
        side.append(line)
    middle = len(lines) - len(head) - len(tail)
    return [*head, f"[{middle} more parts of the traceback are cut]", *reversed(tail)]


def safe_text(value: Any) -> str:
    """Return the text of an object whose ``__str__`` may raise."""
    try:
        return str(value)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"<{type(value).__name__}: its text cannot be made ({type(error).__name__})>"

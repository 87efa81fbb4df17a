"""Makes any value safe to send: Jupyter's messages are UTF-8 JSON."""

from __future__ import annotations

import math
from typing import Any


def clean(value: Any) -> Any:
    r"""Return the value with what has no UTF-8 JSON form made visible instead.

    Lone surrogates become ``\udXXX`` in letters, NaN and infinities their names. Text of user
    code may hold both, and one of them would cost the whole message.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(name)): clean(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return clean_text(str(value))


def clean_text(text: str) -> str:
    """Return the text with lone surrogates spelled out."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


def one_line(text: str) -> str:
    """Return the text with control and direction-changing characters spelled out.

    For file names: a name may hold line breaks, escape sequences or right-to-left overrides
    that would make a list lie.
    """
    return "".join(
        char
        if char.isprintable()
        else char.encode("unicode_escape", "backslashreplace").decode("ascii")
        for char in clean_text(text)
    )


def human_size(size: int) -> str:
    """Return a size for people: ``75 B``, ``1.5 KiB``, ``16 MiB``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} B" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1024
    raise AssertionError

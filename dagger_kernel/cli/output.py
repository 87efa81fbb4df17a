"""How commands speak: tables for people, one JSON document for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Return the console for people (standard output; plain when it is not a terminal)."""
    from rich.console import Console

    # A pipe or a file gets lines as long as they are: a table cut to 80 columns is no use to grep.
    width = None if sys.stdout.isatty() else 200
    return Console(highlight=False, soft_wrap=True, width=width, emoji=False)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    json.dump(value, sys.stdout, default=_jsonable, indent=2)
    sys.stdout.write("\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table without borders; columns whose name ends in ``>`` are right-aligned."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        right = name.endswith(">")
        table.add_column(name.rstrip(">"), justify="right" if right else "left", no_wrap=True)
    for row in rows:
        # Cells of a table hold users' text, which may look like rich's markup.
        table.add_row(*(Text(one_line(str(value))) for value in row))
    console().print(table)


def clean(text: str) -> str:
    """Return lines that are safe on a terminal: no control characters, no lone surrogates."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def one_line(text: str) -> str:
    """Return text that is safe within a line: what a sandbox named cannot begin another one."""
    return clean(text).translate(dict.fromkeys(map(ord, "\n\t"), "\N{REPLACEMENT CHARACTER}"))


def first_line(text: str, width: int = 60) -> str:
    """Return the first line that says something, cut to a width."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[0] if lines else ""
    return line if len(line) <= width and len(lines) <= 1 else line[: width - 1] + "…"


def human_size(size: int) -> str:
    """Return a size for people: ``512 B``, ``1.5 KiB``, ``16 MiB``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"


def human_time(moment: datetime | None) -> str:
    """Return a moment in local time, to the second."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""


def human_seconds(seconds: float | None) -> str:
    """Return a duration for people: ``4 ms``, ``1.25 s``, ``3 min 05 s``."""
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def _jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (set, tuple)):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")

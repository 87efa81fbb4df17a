"""Write the table of settings in ``docs/settings.md`` anew: ``python scripts/settings_table.py``."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from dagger_kernel.settings import PREFIX, Settings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
BEGIN, END = "<!-- settings: begin -->\n", "<!-- settings: end -->\n"


def table() -> str:
    """Return the table: one row for each field of `Settings`."""
    lines = [
        "| name | default | unit | environment variable | what it is |",
        "|---|---|---|---|---|",
    ]
    for item in fields(Settings):
        help_text = item.metadata["help"]
        if choices := item.metadata["choices"]:
            help_text += " One of " + ", ".join(f"`{choice}`" for choice in choices) + "."
        cells = (
            f"`{item.name}`",
            _default(item),
            item.metadata["unit"],
            f"`{PREFIX}{item.name.upper()}`",
            help_text,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the page's text with the table in its place."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}{table()}{END}{after}"


def _default(item: Field[Any]) -> str:
    """Return a default as people write it."""
    if item.default is MISSING:
        return "the platform's user-data directory"
    value = item.default
    if value == "":
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if item.metadata["unit"] == "bytes":
        return f"`{_size(value)}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value}`"


def _size(value: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value % factor == 0:
            return f"{value // factor} {unit}"
    return str(value)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")

"""Previews of exported files, as escaped HTML. File content is never trusted as markup."""

from __future__ import annotations

import csv
import html
import io
import json

ROWS = 10
COLUMNS = 12
CELL_CHARS = 80
TEXT_CHARS = 1500
READ_BYTES = 64 * 1024

TABLES = {"text/csv": ",", "text/tab-separated-values": "\t"}
TEXTS = frozenset(
    {
        "text/plain",
        "text/markdown",
        "text/html",
        "text/x-python",
        "application/json",
        "image/svg+xml",
        "text/yaml",
        "application/yaml",
        "application/xml",
        "text/xml",
    }
)


def preview(mime: str, data: bytes) -> str:
    """Return a preview of a file's content as HTML, or an empty text.

    Tables as the first rows, JSON indented, other text as its beginning. SVG and HTML are shown
    as source: both can carry scripts.
    """
    kind = mime.partition(";")[0].strip().lower()
    head = data[:READ_BYTES].decode("utf-8-sig", "replace")
    if kind in TABLES:
        return _table(head, TABLES[kind], cut=len(data) > READ_BYTES)
    if kind == "application/json" or kind.endswith("+json"):
        return _text(_indented(head))
    if kind in TEXTS or kind.startswith("text/"):
        return _text(head)
    return ""


def _table(text: str, separator: str, *, cut: bool) -> str:
    lines = text.splitlines(keepends=True)
    if cut and lines:
        lines.pop()  # the last line may be half of one
    try:
        rows = []
        for row in csv.reader(io.StringIO("".join(lines)), delimiter=separator):
            rows.append(row)
            if len(rows) > ROWS + 1:
                break
    except csv.Error:
        return _text(text)
    if not rows:
        return ""
    shown = rows[: ROWS + 1]
    head = "".join(f"<th>{_cell(value)}</th>" for value in _columns(shown[0]))
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in _columns(row)) + "</tr>"
        for row in shown[1:]
    )
    more = "<p>&#8230;</p>" if cut or len(rows) > len(shown) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _columns(row: list[str]) -> list[str]:
    return row if len(row) <= COLUMNS else [*row[: COLUMNS - 1], "\N{HORIZONTAL ELLIPSIS}"]


def _cell(value: str) -> str:
    return html.escape(_shorten(value, CELL_CHARS))


def _text(text: str) -> str:
    text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    return f"<pre>{html.escape(_shorten(text, TEXT_CHARS))}</pre>" if text.strip() else ""


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text  # cut or not JSON: as it is


def _shorten(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "\N{HORIZONTAL ELLIPSIS}"

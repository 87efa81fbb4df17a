"""The files a cell made or changed, as display data after the cell's output.

One bundle lists all of them: ``application/vnd.dagger-kernel.files+json`` for the panel's
renderer, ``text/html`` and ``text/plain`` for every other client. Pictures follow as pictures.
The bytes stay in the blob store; only small files travel along, as a link.
"""

from __future__ import annotations

import base64
import html
import shlex
from collections.abc import Sequence
from typing import Any, Protocol

from .previews import preview
from .text import human_size, one_line

FILES_MIME = "application/vnd.dagger-kernel.files+json"

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Shown inline. SVG is not: it can carry scripts."""

LISTED = 50
PICTURES_SHOWN = 20
PICTURE_BYTES = 8 << 20
"""Of all pictures of a cell; what is above is only listed."""

DETAILED = 10
"""With more files than this there are neither previews nor links: the list stays small."""

LINK_BYTES = 4 << 10
LINKS_BYTES = 8 << 10
PREVIEWS_CHARS = 10_000
NAME_CHARS = 100

EXPORTED_KINDS = frozenset({"new", "changed", "output"})
"""``output`` is the full text of output that was cut."""


class Exported(Protocol):
    """A file as `dagger_kernel.sandbox.ExportedFile` describes it."""

    @property
    def path(self) -> str:
        """Relative to ``/home/sandbox``."""

    @property
    def kind(self) -> str:
        """``new``, ``changed``, ``deleted`` or ``output``."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def mime(self) -> str:
        """Media type, by content."""

    @property
    def blob(self) -> str | None:
        """Digest of the content, if it was exported."""

    @property
    def data(self) -> bytes | None:
        """The content, if it was exported."""

    @property
    def skipped(self) -> str | None:
        """Why it was not exported."""


Bundle = tuple[dict[str, Any], dict[str, Any]]
"""Data and metadata of a ``display_data``."""


def file_bundles(sandbox_id: str, step_id: str, files: Sequence[Exported]) -> list[Bundle]:
    """Return what to display for the files of one cell; empty if it exported none."""
    shown = [item for item in files if item.kind in EXPORTED_KINDS]
    if not shown:
        return []
    listed, more = shown[:LISTED], len(shown) - LISTED
    data = {
        FILES_MIME: {
            "version": 1,
            "sandbox": sandbox_id,
            "step": step_id,
            "files": [file_record(item) for item in listed],
            "more": max(more, 0),
        },
        "text/html": _html(sandbox_id, listed, more),
        "text/plain": _plain(sandbox_id, listed, more),
    }
    return [(data, {}), *_pictures(listed)]


def file_record(item: Exported) -> dict[str, Any]:
    """Return a file as JSON, for the bundle and for the reply's metadata."""
    return {
        "path": item.path,
        "kind": item.kind,
        "size": item.size,
        "mime": item.mime,
        "blob": item.blob,
        "skipped": item.skipped,
    }


def _pictures(files: Sequence[Exported]) -> list[Bundle]:
    bundles: list[Bundle] = []
    room = PICTURE_BYTES
    for item in files:
        if item.mime not in PICTURES or not item.data or len(item.data) > room:
            continue
        room -= len(item.data)
        data = {
            item.mime: base64.b64encode(item.data).decode("ascii"),
            "text/plain": f"<{_name(item)}, {human_size(item.size)}>",
        }
        bundles.append((data, {"dagger_kernel": {"file": item.path}}))
        if len(bundles) == PICTURES_SHOWN:
            break
    return bundles


def export_command(sandbox_id: str, path: str = "") -> str:
    """Return the command that brings a file to this machine."""
    command = f"dagger-kernel export {sandbox_id}"
    return f"{command} {shlex.quote(one_line(path))}" if path else command


def _name(item: Exported) -> str:
    name = one_line(item.path)
    return name if len(name) <= NAME_CHARS else name[: NAME_CHARS // 2] + "..." + name[-40:]


def _note(item: Exported) -> str:
    if item.skipped:
        return f"not exported: {item.skipped}"
    return "the whole output of the cell" if item.kind == "output" else item.kind


def _plain(sandbox_id: str, files: Sequence[Exported], more: int) -> str:
    rows = [(_name(item), human_size(item.size), _note(item)) for item in files]
    width = min(max(len(name) for name, _, _ in rows), 60)
    lines = ["Files of this cell:"]
    lines += [f"  {name:<{width}}  {size:>8}  {note}" for name, size, note in rows]
    if more > 0:
        lines.append(f"  ... and {more} more")
    lines.append("Get them: " + export_command(sandbox_id))
    return "\n".join(lines)


def _html(sandbox_id: str, files: Sequence[Exported], more: int) -> str:
    detailed = len(files) + max(more, 0) <= DETAILED
    links, previews = (LINKS_BYTES, PREVIEWS_CHARS) if detailed else (0, 0)
    rows = []
    for item in files:
        name = html.escape(_name(item))
        cell = f"<code>{name}</code>"
        if detailed and item.data is not None and len(item.data) <= min(LINK_BYTES, links):
            links -= len(item.data)
            cell = _link(item, cell)
        shown = preview(item.mime, item.data) if detailed and item.data else ""
        if shown and len(shown) <= previews:
            previews -= len(shown)
            cell = f"{cell}<details><summary>preview</summary>{shown}</details>"
        rows.append(
            f'<tr><td style="text-align:left">{cell}</td><td>{human_size(item.size)}</td>'
            f'<td style="text-align:left">{html.escape(item.mime)}</td>'
            f'<td style="text-align:left">{html.escape(one_line(_note(item)))}</td></tr>'
        )
    if more > 0:
        rows.append(f'<tr><td colspan="4">&#8230; and {more} more</td></tr>')
    return (
        '<div class="dagger-kernel-files"><table><thead><tr><th>file</th><th>size</th>'
        f"<th>type</th><th></th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"<p>Get them: <code>{html.escape(export_command(sandbox_id))}</code></p></div>"
    )


def _link(item: Exported, label: str) -> str:
    """Return a download link that carries the bytes.

    Always octet-stream: whatever the file says it is, the browser must not open it as a page.
    """
    assert item.data is not None
    data = base64.b64encode(item.data).decode("ascii")
    name = html.escape(one_line(item.path.rsplit("/", 1)[-1]), quote=True)
    return f'<a download="{name}" href="data:application/octet-stream;base64,{data}">{label}</a>'

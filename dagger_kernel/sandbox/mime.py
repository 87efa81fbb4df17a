"""Media types by content, the name only where content says nothing."""

from __future__ import annotations

import mimetypes

import puremagic

TEXT = frozenset((".csv", ".tsv", ".json", ".md", ".txt", ".html", ".htm", ".svg", ".xml", ".py"))
NAMED = {".csv": "text/csv", ".tsv": "text/tab-separated-values", ".md": "text/markdown"}
OFFICE_ZIP = frozenset((".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".whl", ".jar", ".npz"))


def sniff(name: str, data: bytes) -> str:
    """Return the media type of a file.

    Magic numbers win over the name, except where a name makes a generic container precise
    (an ``.xlsx`` is a zip file) and for text, which has no magic number.
    """
    suffix = "." + name.rpartition(".")[2].lower() if "." in name else ""
    guessed = NAMED.get(suffix) or mimetypes.guess_type(name)[0]
    try:
        found = puremagic.from_string(data[:4096], mime=True) if data else ""
    except (puremagic.PureError, ValueError):
        found = ""
    if _is_text(data):
        if found in ("image/svg+xml", "text/html"):
            return found
        return guessed if guessed and suffix in TEXT else "text/plain"
    if found == "application/zip" and suffix in OFFICE_ZIP and guessed:
        return guessed
    if found and "/" in found and not found.startswith("text/"):
        return found
    if guessed and not guessed.startswith(("text/", "image/")):
        return guessed
    return "application/octet-stream"


def _is_text(data: bytes) -> bool:
    sample = data[:8192]
    if b"\0" in sample:
        return False
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(sample) - 4 and len(data) > len(sample)
    return True

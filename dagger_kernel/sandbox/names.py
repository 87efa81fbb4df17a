"""Names of files that come in: whatever they were called, safe and readable inside."""

from __future__ import annotations

import unicodedata

from ..errors import SandboxPathError

MAX_NAME_BYTES = 200


def safe_name(name: str) -> str:
    """Return one readable file name for whatever the user's file was called.

    Folders in the name are dropped, control characters become spaces; what is left must be a name.

    Raises
    ------
    SandboxPathError
        Nothing usable is left.
    """
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in last)
    clean = unicodedata.normalize("NFC", " ".join(clean.split()))
    if clean in ("", ".", ".."):
        raise SandboxPathError(name, "it has no file name")
    stem, dot, suffix = clean.rpartition(".")
    while len(clean.encode()) > MAX_NAME_BYTES:
        stem = (stem or suffix)[:-1]
        clean = f"{stem}{dot}{suffix}" if dot and len(suffix) < 20 else stem
    return clean


def safe_path(name: str) -> str:
    """Return a relative path whose every part is a `safe_name`, folders kept.

    Raises
    ------
    SandboxPathError
        A part goes up, or nothing is left of it.
    """
    return "/".join(safe_name(part) for part in name.strip("/").split("/"))

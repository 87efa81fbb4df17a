"""Rules for paths and names that cross HTTP."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

from ..errors import SandboxPathError

MAX_PATH = 4096
MAX_NAME = 255


def clean_path(path: str, *, empty: bool = False) -> str:
    """Return a path relative to ``/home/sandbox`` unchanged, or refuse it.

    Nothing is normalised: a path that would need it is not one that the log or an engine gave out.

    Parameters
    ----------
    path
        From the URL. Bytes that are no UTF-8 are surrogate-escaped.
    empty
        Whether the sandbox's home itself may be meant.

    Raises
    ------
    SandboxPathError
        It is absolute, leaves the home, or no file can have it.
    """
    if not path:
        if empty:
            return path
        raise SandboxPathError(path, "it is empty")
    if "\0" in path:
        raise SandboxPathError(path, "it holds a NUL byte")
    if path.startswith("/"):
        raise SandboxPathError(path, "it is absolute")
    parts = path.split("/")
    if ".." in parts or "." in parts or "" in parts:
        raise SandboxPathError(path, "it has an empty, '.' or '..' part")
    raw = path.encode("utf-8", "surrogateescape")
    if len(raw) > MAX_PATH or max(map(len, raw.split(b"/"))) > MAX_NAME:
        raise SandboxPathError(path, "it is too long")
    return path


def disposition(path: str, *, inline: bool = False) -> str:
    """Return a ``Content-Disposition`` that no name can break out of (RFC 6266, RFC 8187)."""
    name = path.rsplit("/", 1)[-1]
    # Formatting characters (right-to-left override above all) disguise an extension.
    shown = "".join(
        "_" if unicodedata.category(character) in ("Cc", "Cf") else character for character in name
    )
    shown = shown.encode("utf-8", "surrogateescape").decode("utf-8", "replace") or "file"
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", shown)
    kind = "inline" if inline else "attachment"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(shown, safe='')}"

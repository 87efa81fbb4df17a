"""One JSON text for one value, so that digests of equal data are equal."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Return the canonical UTF-8 JSON of a value.

    Keys are sorted, no spaces, no NaN. Everything outside ASCII is escaped, so
    lone surrogates and NUL (user text may hold both) never reach an encoder or
    a database text column as such.

    Raises
    ------
    ValueError, TypeError
        The value has no JSON form.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def digest_bytes(data: bytes | bytearray | memoryview) -> str:
    """Return the SHA-256 of the bytes, in 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_json(value: Any) -> str:
    """Return the digest of a value's canonical JSON."""
    return digest_bytes(canonical_json(value))

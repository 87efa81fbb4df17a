"""Keys address states: ``key(n) = H(key(n-1), nonce)``, ``key(0) = H(base, runner)``."""

from __future__ import annotations

import secrets

from .canonical import digest_json


def root_key(base_digest: str, runner_digest: str) -> str:
    """Return the key of the state before any step."""
    return digest_json(["base", base_digest, runner_digest])


def child_key(parent_key: str, nonce: str) -> str:
    """Return the key of the state after the execution ``nonce`` on ``parent_key``."""
    return digest_json(["step", parent_key, nonce])


def fresh_nonce() -> str:
    """Return a new identity for one execution (128 random bits, hexadecimal)."""
    return secrets.token_hex(16)


def content_nonce(content: object) -> str:
    """Return the nonce of ``reuse = "shared"``: equal content, equal identity."""
    return digest_json(["shared", content])[:32]

"""A state session that keeps nothing: for tests of the runner alone, and while state is unavailable."""

from __future__ import annotations

from typing import Any


class NoSession:
    """The interface of `state.StateSession`, without its effects."""

    def __init__(self, root: str, namespace: dict[str, Any], **_more: Any) -> None:
        self.root = root
        self.namespace = namespace
        self.abandon = False
        self.secrets: dict[str, str] = {}

    def open(self) -> None:
        """Do nothing."""

    def warm(self) -> None:
        """Do nothing."""

    def rehearse(self) -> None:
        """Do nothing."""

    def begin(
        self, source: str, *, cell: int, step: str, seed: bytes, recompute: bool = False
    ) -> None:
        """Do nothing."""

    def make_due(self) -> None:
        """Do nothing."""

    def names(self) -> list[str]:
        """Return no names."""
        return []

    def saved_names(self) -> list[str]:
        """Return no names."""
        return []

    def save(self) -> dict[str, Any]:
        """Return an empty report."""
        return {"saved": [], "unchanged": 0, "lost": []}

    def describe(self) -> list[dict[str, Any]]:
        """Return no variables."""
        return []


def session_class() -> Any:
    """Return the state session's class."""
    try:
        from .state import StateSession
    except ImportError:
        return NoSession
    return StateSession

"""Secrets that were lent to a cell: what holds one is not saved."""

from __future__ import annotations

import re
from typing import Any

LEAST = 8
"""Characters; a shorter value stands in ordinary data too often to be looked for."""


class Withheld:
    """Finds secrets in what is about to be saved.

    Parameters
    ----------
    secrets : dict
        Values by name.
    """

    def __init__(self, secrets: dict[str, str]) -> None:
        self._marks = {
            name: (value, re.compile(re.escape(value.encode("utf-8", "surrogatepass"))))
            for name, value in secrets.items()
            if len(value) >= LEAST
        }

    def found_in(self, *data: bytes | memoryview) -> str:
        """Give the name of a secret whose value is in the data, or nothing."""
        for name, (_, mark) in self._marks.items():
            if any(mark.search(part) for part in data):
                return name
        return ""

    def without(self, value: Any) -> Any:
        """Give a JSON value without the entries whose text holds a secret."""
        if not self._marks:
            return value
        if isinstance(value, dict):
            return {name: self.without(item) for name, item in value.items() if self._fine(item)}
        if isinstance(value, list):
            return [self.without(item) for item in value if self._fine(item)]
        return value

    def _fine(self, item: Any) -> bool:
        return not (
            isinstance(item, str) and any(value in item for value, _ in self._marks.values())
        )

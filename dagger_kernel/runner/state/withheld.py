"""Secrets that were lent to a cell: what holds one is not saved."""

from __future__ import annotations

import json
import re
from typing import Any

LEAST = 8
"""Characters; a shorter value stands in ordinary data too often to be looked for."""

MASK = "***"
"""What clients see in a secret's place."""


class Withheld:
    """Finds secrets in what is about to be saved.

    Parameters
    ----------
    secrets : dict
        Values by name.
    """

    def __init__(self, secrets: dict[str, str]) -> None:
        self._values = {name: value for name, value in secrets.items() if len(value) >= LEAST}
        self._marks = {
            name: re.compile(
                b"|".join(
                    re.escape(form.encode("utf-8", "surrogatepass")) for form in _written(value)
                )
            )
            for name, value in self._values.items()
        }
        shown = {form for value in self._values.values() for form in _shown(value)}
        longest_first = sorted(shown, key=len, reverse=True)
        self._shown = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def __bool__(self) -> bool:
        """Whether there is anything to find."""
        return bool(self._marks)

    def found_in(self, *data: bytes | memoryview) -> str:
        """Give the name of a secret whose value is in the data, or nothing."""
        for name, mark in self._marks.items():
            if any(mark.search(part) for part in data):
                return name
        return ""

    def without(self, value: Any) -> Any:
        """Give a JSON value without the entries whose text holds a secret."""
        if not self:
            return value
        if isinstance(value, dict):
            return {
                name: self.without(item)
                for name, item in value.items()
                if self._fine(name) and self._fine(item)
            }
        if isinstance(value, list):
            return [self.without(item) for item in value if self._fine(item)]
        return value

    def masked(self, value: Any) -> Any:
        """Give a JSON value with every secret in its text masked: what is kept to be shown once more."""
        if isinstance(value, str):
            return self._shown.sub(MASK, value)
        if isinstance(value, dict):
            return {name: self.masked(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.masked(item) for item in value]
        return value

    def _fine(self, item: Any) -> bool:
        return not (isinstance(item, str) and any(value in item for value in self._values.values()))


def _written(value: str) -> set[str]:
    """Give the ways in which a value is written: as it is, in a literal, in JSON."""
    return {value, repr(value)[1:-1], json.dumps(value)[1:-1]}


def _shown(value: str) -> set[str]:
    """Give the ways in which a value is shown: a key of several lines often a line at a time."""
    return _written(value) | {line for line in value.split("\n") if len(line.strip()) >= LEAST}

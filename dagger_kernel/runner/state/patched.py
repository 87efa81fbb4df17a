"""Places of libraries where the user's code put something, and what the library has there itself.

A saved name always means the library's own object. So a patch can be undone by a variable that
holds the original, and what was saved before a patch does not change with it.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

UNKNOWN: Any = object()
"""Stands for the library's own object in the cell which replaced it, and where there is none."""


class Patched:
    """The patched places of one process."""

    def __init__(self) -> None:
        self._originals: dict[tuple[str, str], Any] = {}

    def add(self, module: str, path: str, original: Any = UNKNOWN) -> None:
        """Note that a place no longer holds, or is about to lose, the library's own object."""
        self._originals.setdefault((module, path), original)

    def discard(self, module: str, path: str) -> None:
        """Note that a place is as the library made it."""
        self._originals.pop((module, path), None)

    def holds(self, value: Any, module: str, path: str) -> bool:
        """Whether `value` is what the library itself has at a place, as far as it is in memory."""
        original = self._originals.get((module, path), self)
        if original is self:
            return find_importable(module, path) is value
        return value is original or (original is UNKNOWN and _is_made_by(module, value))

    def find(self, module: str, path: str) -> Any:
        """Import what the library itself has at a place."""
        found: Any = importlib.import_module(module)
        done = ""
        for part in path.split(".") if path else ():
            done = f"{done}.{part}" if done else part
            original = self._originals.get((module, done), UNKNOWN)
            found = getattr(found, part) if original is UNKNOWN else original
        return found


def find_importable(module: str, path: str) -> Any:
    """Find a module attribute by dotted path among loaded modules; None if absent."""
    found: Any = sys.modules.get(module)
    if found is None:
        return None
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return None
    return found


def _is_made_by(module: str, value: Any) -> bool:
    """Whether an object which says that it is from a module is: `functools.wraps` copies the name."""
    home = sys.modules.get(module)
    if isinstance(value, types.FunctionType):
        return home is not None and value.__globals__ is vars(home)
    if isinstance(value, types.BuiltinFunctionType):
        return value.__self__ is home
    return isinstance(value, type) and value.__module__ == module

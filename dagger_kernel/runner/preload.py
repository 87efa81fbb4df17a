"""Importing libraries before a cell asks for them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

COMPANIONS = {
    "matplotlib": ("matplotlib.pyplot", "matplotlib_inline.backend_inline"),
    "pandas": ("pandas.io.formats.html", "pandas.io.formats.string"),
}
"""What users import of a library, and what it imports itself when a value is first shown."""


def modules_of(packages: Iterable[str]) -> list[str]:
    """Return the modules to import for the base's packages."""
    return [module for name in packages for module in (name, *COMPANIONS.get(name, ()))]


def preload(name: str) -> None:
    """Import a module; one that is missing or broken is left out."""
    try:
        importlib.import_module(name)
    except Exception:  # noqa: S110 - a cell that needs it will show the error
        pass

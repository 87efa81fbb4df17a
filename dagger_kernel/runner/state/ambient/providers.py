"""All providers, in the order in which they are restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import process, randomness

if TYPE_CHECKING:
    from ..session import StateSession
    from .base import Provider


def all_providers(session: StateSession) -> list[Provider]:
    """Make the providers of one session."""
    del session
    return [
        process.Directory(),
        process.Environment(),
        process.SearchPath(),
        process.Interpreter(),
        randomness.PythonRandom(),
        randomness.NumpyRandom(),
        randomness.TorchRandom(),
    ]

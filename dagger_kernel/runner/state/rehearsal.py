"""Touches what saving a cell touches, while a room waits: after a fork, each page of memory is copied at its first use.

What is saved is nobody's, with tables of its own, and goes nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .graph import Registry
from .loader import Loader
from .manifest import Manifest
from .saver import Saver
from .store import BlobStore
from .withheld import Withheld

if TYPE_CHECKING:
    from collections.abc import Iterable

VARIABLES = {"number": 1, "texts": ["a", "b"], "table": {"x": 2.5}}


class _Nowhere(BlobStore):
    """Takes bytes and keeps none."""

    def _write(self, parts: Iterable[bytes | memoryview]) -> str:
        return str(sum(len(part) for part in parts))


def rehearse_saving() -> None:
    """Save a few variables to nowhere; no code of the user's runs."""
    store = _Nowhere("")
    loader = Loader(Manifest(), store, Registry({}), lambda _name, _value: None)
    saver = Saver(loader, store, exposed=False, withheld=Withheld({}))
    saver.save(dict(VARIABLES), {}, 1, set()).manifest.to_json()

"""The unpickler: reads what :mod:`.pickler` wrote."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .graph import Registry


class StateUnpickler(pickle.Unpickler):
    """Loads one component.

    Parameters
    ----------
    data : bytes
        The pickle.
    buffers : iterable
        The buffers which left it.
    registry : Registry
        Live nodes.
    """

    def __init__(self, data: bytes, buffers: Iterable[Any], registry: Registry) -> None:
        super().__init__(io.BytesIO(data), buffers=buffers)
        self._patched = registry.patched
        self.met_unequal = False
        """Whether there was a float which is not equal to itself; see :mod:`.unequal`."""

    def find_class(self, module: str, name: str) -> Any:
        """Give what a global of the pickle names; a patch does not change what that means."""
        return self._patched.find(module, name)

    def persistent_load(self, value: Any) -> Any:
        """Give a float which pickle itself would write again and again."""
        self.met_unequal = True
        return value

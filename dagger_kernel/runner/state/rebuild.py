"""The module which saved pickles name: functions which rebuild objects.

Pickles name their functions by module. This package is imported under different
names inside and outside a sandbox, so everything a pickle may call is published
in one synthetic module with a fixed name.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from .loader import Loader

MODULE = "_dagger_kernel_state"

_Function = TypeVar("_Function", bound="Callable[..., Any]")

published = sys.modules.get(MODULE) or types.ModuleType(MODULE, "Rebuilds saved objects.")
sys.modules[MODULE] = published

_loaders: list[Loader] = []


def rebuilder(function: _Function) -> _Function:
    """Publish a function for use in saved pickles, under its own name."""
    function.__module__ = MODULE
    function.__qualname__ = function.__name__
    setattr(published, function.__name__, function)
    return function


def push_loader(loader: Loader) -> None:
    """Make `loader` the one which the rebuilders act for."""
    _loaders.append(loader)


def pop_loader() -> None:
    """Undo the last :func:`push_loader`."""
    _loaders.pop()


def current_loader() -> Loader:
    """The loader on whose behalf an object is being rebuilt."""
    return _loaders[-1]

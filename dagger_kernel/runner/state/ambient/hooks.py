"""Run something right after a module has been imported."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import types
    from collections.abc import Callable, Sequence

_waiting: dict[str, list[Callable[[], None]]] = {}


class _Loader:
    """Wraps a module's loader to call back after it ran."""

    def __init__(self, loader: Any, name: str) -> None:
        self._loader = loader
        self._name = name

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        # The module must look as if it had been loaded in the usual way.
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for callback in _waiting.pop(self._name, ()):
            callback()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Finder:
    """Finds waited-for modules through the other finders."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = cast("Any", _Loader(spec.loader, name))
                return spec
        return None


_finder = _Finder()


def on_import(module: str, callback: Callable[[], None]) -> None:
    """Call back after `module` is imported; at once if it is already."""
    if module in sys.modules:
        callback()
        return
    _waiting.setdefault(module, []).append(callback)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)

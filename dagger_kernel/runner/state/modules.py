"""Modules of the user's own, saved like ``__main__``: by value, never run again.

Within one process a module is imported once: what it holds stays, its top level
does not run again, and an edit on disk shows after ``reload`` only. Restoring it
by importing it again would break all three.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import re
import sys
import sysconfig
import types
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from .dispatch import reduces
from .pickler import rebuild_node
from .rebuild import MODULE, current_loader, rebuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .loader import Loader
    from .pickler import StatePickler

LIMIT = 100
"""Packages with more modules than this are libraries, wherever they lie."""

_DROPPED = frozenset({"__builtins__", "__spec__", "__loader__", "__cached__", "__name__"})


_MADE_IN_C = re.compile(r"_cython_\d")
"""Where Cython keeps the types its extensions share: no import made them, none is the user's."""


@functools.cache
def library_roots() -> tuple[str, ...]:
    """Directories whose modules come with the environment."""
    paths = sysconfig.get_paths()
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, *paths.values()}
    found.add(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return tuple(os.path.realpath(path) + os.sep for path in found if path and path != "/")


def last_module() -> str:
    """Name of the module imported last; the table of modules is in order of import.

    A copy of the table would touch, and so unshare, memory which forks share.
    """
    return next(reversed(sys.modules), "")


def user_modules(last: str) -> set[str]:
    """Names of the modules imported since `last`, which belong to the user."""
    try:
        new = set(itertools.takewhile(lambda name: name != last, reversed(sys.modules)))
    except RuntimeError:  # a thread imports something meanwhile
        new = set(sys.modules)
    new -= {MODULE, "__main__", "__mp_main__"}
    if not new:
        return set()
    roots = library_roots()
    found = set()
    for name in sorted(new):
        module = sys.modules[name]
        top = name.partition(".")[0]
        if _MADE_IN_C.match(name) or module is sys.modules.get("__main__"):
            continue
        if top != name and top in sys.modules and top not in found:
            continue  # a part of a library, even where it does not say where it lies
        if isinstance(module, types.ModuleType) and _is_users(module, roots):
            found.add(name)
    sizes: dict[str, int] = {}
    for name in found:
        top = name.partition(".")[0]
        sizes[top] = sizes.get(top, 0) + 1
    return {name for name in found if sizes[name.partition(".")[0]] <= LIMIT}


def _is_users(module: types.ModuleType, roots: tuple[str, ...]) -> bool:
    content = types.ModuleType.__getattribute__(module, "__dict__")
    file = content.get("__file__")
    if isinstance(file, str):
        if not file.endswith((".py", ".pyc")):
            return False
        path = os.path.realpath(file)
        return (
            not path.startswith(roots)
            and "site-packages" not in path
            and "dist-packages" not in path
        )
    spec = content.get("__spec__")
    if spec is None:
        # Made by hand and put into `sys.modules`.
        return content.get("__loader__") is None
    if spec.origin is None and spec.submodule_search_locations is not None:
        places = [
            os.path.realpath(str(place)) + os.sep for place in spec.submodule_search_locations
        ]
        return bool(places) and not any(place.startswith(roots) for place in places)
    return False


@reduces("builtins.module")
def reduce_module(pickler: StatePickler, value: types.ModuleType) -> Any:
    """Save a module by name, as a node, or (where it is the node) by value."""
    content = types.ModuleType.__getattribute__(value, "__dict__")
    if content is pickler.registry.namespace:
        pickler.by_reference.add(id(value))
        return (rebuild_main, ())
    spec = content.get("__spec__")
    for name in (content.get("__name__"), getattr(spec, "name", None)):
        if not isinstance(name, str) or sys.modules.get(name) is not value:
            continue
        key = pickler.registry.module_key(name)
        if key is None:
            return pickler.by_name(value, name, "")
        if key not in pickler.inline:
            pickler.references.add(key)
            pickler.by_reference.add(id(value))
            return (rebuild_node, (key,))
        return _by_value(name, key, value, content)
    return _by_value(str(content.get("__name__", "module")), None, value, content)


def _by_value(name: str, key: str | None, value: types.ModuleType, content: dict[str, Any]) -> Any:
    spec = content.get("__spec__")
    origin = None
    kind = type(value) if type(value) is not types.ModuleType else None
    if spec is not None:
        locations = spec.submodule_search_locations
        origin = (spec.origin, None if locations is None else [str(place) for place in locations])
    recipe = (rebuild_module, (name, key, origin, kind))
    if key is not None:
        return recipe  # `ModuleState` fills it, after the classes in it are made
    return (*recipe, _kept(content), None, None, restore_module)


def _kept(content: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in content.items() if k not in _DROPPED}
    if "__path__" in kept:
        kept["__path__"] = [str(place) for place in kept["__path__"]]
    return kept


class ModuleState:
    """What fills an empty module."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module


@reduces(ModuleState)
def reduce_module_state(_pickler: StatePickler, state: ModuleState) -> Any:
    """Save the content of a module."""
    content = types.ModuleType.__getattribute__(state.module, "__dict__")
    return (restore_module, (state.module, _kept(content)))


@rebuilder
def rebuild_main() -> types.ModuleType:
    """Give the module whose variables these are: there is one in every process, none is made."""
    return sys.modules["__main__"]


@rebuilder
def rebuild_module(name: str, key: str | None, origin: Any, kind: Any) -> types.ModuleType:
    """Make an empty module, known under its name from the start."""
    module: types.ModuleType = (kind or types.ModuleType)(name)
    if origin is not None:
        file, locations = origin
        if file is not None:
            spec = importlib.util.spec_from_file_location(
                name, file, submodule_search_locations=locations
            )
        else:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = locations
        module.__spec__ = spec
        module.__loader__ = spec.loader if spec is not None else None
    if key is not None:
        sys.modules[name] = module
        current_loader().register(key, module)
    return module


@rebuilder
def restore_module(module: types.ModuleType, content: dict[str, Any]) -> None:
    """Fill a module."""
    vars(module).update(content)


class SavedModules:
    """Finds saved modules of the user's before the disk is asked."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: Any = None
    ) -> ModuleSpec | None:
        key = f"m:{name}"
        cid = self._loader.component_of.get(key)
        if cid is None or cid in self._loader.loaded:
            return None
        return ModuleSpec(name, _ModuleLoader(self._loader, key))  # type: ignore[arg-type]


class _ModuleLoader:
    """Hands a restored module to the import system."""

    def __init__(self, loader: Loader, key: str) -> None:
        self._loader = loader
        self._key = key
        self._spec: Any = None

    def create_module(self, _spec: ModuleSpec) -> Any:
        module = self._loader.resolve(self._key)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Put the module's own spec back; it has run in an earlier cell."""
        module.__spec__ = self._spec
        module.__loader__ = getattr(self._spec, "loader", None)

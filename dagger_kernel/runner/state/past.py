"""The variables as an earlier step left them, for cells which run again.

What has not changed since is not a copy: it *is* the live object, so that what a
cell makes again shares classes, functions and data with the rest of the session.
"""

from __future__ import annotations

import decimal
import os
import sys
from typing import TYPE_CHECKING, Any, Self

from .ambient.interpreter import Decimals
from .ambient.process import Directory, Environment, SearchPath
from .ambient.randomness import NumpyRandom, PythonRandom, TorchRandom
from .graph import Registry
from .loader import Loader
from .lost import LostObject

if TYPE_CHECKING:
    from collections.abc import Callable

    from .manifest import Manifest
    from .store import BlobStore


class PastLoader(Loader):
    """Loads an earlier manifest beside the live one.

    Parameters
    ----------
    manifest : Manifest
        The earlier state.
    store : BlobStore
        Where its bytes are.
    bind : callable
        As in :class:`Loader`.
    live : Loader
        The state of the running cell.
    """

    def __init__(
        self, manifest: Manifest, store: BlobStore, bind: Callable[[str, Any], None], live: Loader
    ) -> None:
        super().__init__(manifest, store, Registry(live.namespace), bind)
        self._live = live
        self.shared = {
            cid
            for cid, component in manifest.components.items()
            if live.manifest.components.get(cid) == component
            and (cid not in live.loaded or not any(k[:2] in "v:a:" for k in component.keys))
        }
        """Components which are in memory once, here and in the running cell."""
        while changed := {cid for cid in self.shared if self._refers_to_changed(cid)}:
            self.shared -= changed

    def _refers_to_changed(self, cid: str) -> bool:
        references = self.manifest.components[cid].references
        return any(
            self.component_of[key] not in self.shared
            for key in references
            if key in self.component_of
        )

    def load(self, cid: str) -> list[Any] | None:
        if cid not in self.shared:
            return super().load(cid)
        self.loaded.add(cid)
        component = self.manifest.components[cid]
        if cid in self._live.loaded:
            values: list[Any] | None = [self._live.registry.objects.get(k) for k in component.keys]
        else:
            values = self._live.load(cid)
        if values is None:
            self.failed[cid] = self._live.failed.get(cid, "it could not be read")
            self._stand_in(component, self.failed[cid])
            return None
        self._take(component, values)
        return values

    def resolve(self, key: str) -> Any:
        cid = self.component_of.get(key)
        if cid not in self.shared:
            return super().resolve(key)
        if cid not in self.loaded:
            self.load(cid)
        return self._live.resolve(key)

    def is_live(self, name: str, value: Any) -> bool:
        """Whether a variable still holds the object which the running cell has, too."""
        entry = self.manifest.names.get(name)
        return (
            entry is not None
            and self.component_of.get(entry.key) in self.shared
            and self.value_ids.get(entry.key) == id(value)
        )


class Surroundings:
    """The interpreter's state around a cell which runs again; as it was afterwards.

    Random streams, directory, environment, search path and decimal context decide
    over values; options of libraries decide over what is shown, and stay.

    Parameters
    ----------
    home : str
        The directory cells start in.
    base : dict, optional
        The environment before any change of the user's.
    """

    def __init__(self, home: str, base: dict[str, str] | None) -> None:
        self._home = home
        self._base = base
        self._providers = [Directory(), SearchPath(), PythonRandom(), NumpyRandom(), TorchRandom()]

    def __enter__(self) -> Self:
        self._cwd, self._path, self._environ = os.getcwd(), list(sys.path), dict(os.environ)
        self._decimals = decimal.getcontext().copy()
        self._streams: list[tuple[Any, Any]] = []
        for provider in self._present():
            if isinstance(provider, PythonRandom | NumpyRandom | TorchRandom):
                provider._base = None
                self._streams.append((provider, provider.capture()))
        return self

    def _present(self) -> list[Any]:
        return [provider for provider in self._providers if provider.module in sys.modules]

    def put(self, saved: dict[str, Any], fetch: Callable[[str], Any], seed: bytes) -> None:
        """Set what a step found when it began."""
        os.chdir(self._home)
        if self._base is not None:
            os.environ.clear()
            os.environ.update(self._base)
        if saved.get(Environment.name):
            Environment().restore(saved[Environment.name])
        decimal.setcontext(decimal.DefaultContext.copy())
        if (context := fetch(f"a:{Decimals.name}")) is not None:
            decimal.setcontext(context.copy())
        for provider in self._present():
            provider.start()
            provider.seed(seed)
            value = saved.get(provider.name) if provider.plain else fetch(f"a:{provider.name}")
            if value is not None and type(value) is not LostObject:
                provider.restore(value)

    def __exit__(self, *_error: object) -> None:
        os.environ.clear()
        os.environ.update(self._environ)
        sys.path[:] = self._path
        os.chdir(self._cwd)
        decimal.setcontext(self._decimals)
        for provider, state in self._streams:
            provider.restore(state)

"""Loads components on demand and binds the names which still mean them."""

from __future__ import annotations

import importlib
import sys
import threading
import time
import types
from typing import TYPE_CHECKING, Any

from .errors import StateLostError, reason_of
from .lost import LostObject, lost_error
from .pickler import NAMESPACE
from .rebuild import pop_loader, push_loader
from .unpickler import StateUnpickler

if TYPE_CHECKING:
    from collections.abc import Callable

    from .graph import Registry
    from .manifest import Buffer, Component, Manifest
    from .memory import Memory
    from .store import BlobStore

SMALL_BUFFER = 256 << 10
"""Buffers below this are read; larger ones are mapped and read page by page."""


class Loader:
    """The saved side of one namespace.

    Parameters
    ----------
    manifest : Manifest
        What was saved.
    store : BlobStore
        Where its bytes are.
    registry : Registry
        Live nodes; shared with the save.
    bind : callable
        Called with a name and a value when a component brings it.
    """

    def __init__(
        self,
        manifest: Manifest,
        store: BlobStore,
        registry: Registry,
        bind: Callable[[str, Any], None],
    ) -> None:
        self.manifest = manifest
        self.registry = registry
        self.namespace = registry.namespace
        self.loaded: set[str] = set()
        self.failed: dict[str, str] = {}
        """Components which could not be read, and why; their bytes are kept."""
        self.value_ids: dict[str, int] = {}
        self.values: dict[str, Any] = {}
        self.touched: list[str] = []
        self.seconds = 0.0
        self.exposed = False
        """Whether the user may hold the dictionary of globals itself."""
        self.lock = threading.RLock()
        self.expose_hook: Callable[[], None] = lambda: None
        self.code_hook: Callable[[types.CodeType], None] = lambda _code: None
        self._store = store
        self._memory: Memory | None = None
        self._bind = bind
        self._depth = 0
        self.component_of = manifest.owners()
        self.names_of: dict[str, list[str]] = {}
        for name, entry in manifest.names.items():
            self.names_of.setdefault(entry.key, []).append(name)

    # --- asked by code -------------------------------------------------------------------

    def fetch(self, name: str) -> Any:
        """Load the variable `name` and give its value.

        Raises
        ------
        KeyError
            No such variable is saved.
        StateLostError
            It could not be kept.
        """
        __tracebackhide__ = True
        entry = self.manifest.names.get(name)
        if entry is None:
            raise KeyError(name)
        with self.lock:
            if name in self.namespace:
                return self.namespace[name]
            cid = self.component_of[entry.key]
            if cid in self.loaded:
                # Loaded before and gone since: the user deleted it.
                raise KeyError(name)
            self.load(cid)
            if name not in self.namespace:
                raise KeyError(name)
            value = self.namespace[name]
        if type(value) is LostObject:
            raise lost_error(value)
        return value

    def resolve(self, key: str) -> Any:
        """Give a node by key, loading its component."""
        found = self.registry.objects.get(key)
        if found is None:
            with self.lock:
                cid = self.component_of.get(key)
                if cid is None:
                    raise StateLostError(key, "object", "its definition was not saved", 0)
                if cid in self.failed:
                    raise StateLostError(key, "object", self.failed[cid], 0)
                if cid not in self.loaded:
                    self.load(cid)
            found = self.registry.objects.get(key)
            if found is None:
                why = self.failed.get(cid, "it was not in its saved component")
                raise StateLostError(key, "object", why, 0)
        return found

    def register(self, key: str, value: Any) -> None:
        """Record a class or function node while it is being rebuilt."""
        self.registry.register(key, value)

    def module(self, name: str) -> types.ModuleType:
        """Give the module whose namespace a function lives in."""
        if self.registry.module_key(name) is not None and name not in sys.modules:
            self.resolve(f"m:{name}")
        return importlib.import_module(name)

    def code_loaded(self, code: types.CodeType) -> None:
        """Note that a function with this code is now callable."""
        self.code_hook(code)

    def is_unreadable(self, name: str, value: Any) -> bool:
        """Whether a value stands for saved bytes which could not be read this time."""
        entry = self.manifest.names.get(name)
        return (
            type(value) is LostObject
            and entry is not None
            and self.component_of.get(entry.key) in self.failed
        )

    # --- loading -------------------------------------------------------------------------

    def load(self, cid: str) -> list[Any] | None:
        """Load one component and give its values; a failure leaves stand-ins, and never raises."""
        component = self.manifest.components[cid]
        start = time.perf_counter()
        self._depth += 1
        self.loaded.add(cid)
        push_loader(self)
        try:
            values = self._unpickle(component)
        except Exception as error:
            self.failed[cid] = reason = _failure(error)
            self._stand_in(component, reason)
            return None
        finally:
            pop_loader()
            self._depth -= 1
            if not self._depth:
                self.seconds += time.perf_counter() - start
        self._take(component, values)
        return values

    def adopt(self, cid: str, values: list[Any]) -> None:
        """Let live objects stand for a component they are equal to, in place of loading it."""
        self.loaded.add(cid)
        self._take(self.manifest.components[cid], values)

    def _take(self, component: Component, values: list[Any]) -> None:
        """Record loaded nodes and bind the names which mean them."""
        for key, value in zip(component.keys, values, strict=False):
            self.value_ids[key] = id(value)
            if key.startswith("a:"):
                self.values[key] = value
            elif not key.startswith("v:"):
                self.registry.register(key, value)
            for name in self.names_of.get(key, ()):
                self.touched.append(name)
                self._bind(name, value)
        if NAMESPACE in component.references and not self.exposed:
            self.exposed = True
            self.expose_hook()

    def _unpickle(self, component: Component) -> list[Any]:
        buffers = [self._buffer(buffer) for buffer in component.buffers]
        data = self._store.read(component.skeleton)
        unpickler = StateUnpickler(data, buffers, self.registry)
        if NAMESPACE in component.references:
            unpickler.load()  # the first pickle stands for the globals themselves
        _prelude, values = unpickler.load()
        if unpickler.met_unequal:
            self.registry.unequal.update(component.keys)
        return list(values)

    def _buffer(self, buffer: Buffer) -> Any:
        if buffer.length < SMALL_BUFFER and not buffer.extents:
            return self.memory.read(buffer)
        return self.memory.map(buffer)

    @property
    def memory(self) -> Memory:
        """The mappings; made on first need, as they import ctypes."""
        if self._memory is None:
            from .memory import Memory

            self._memory = Memory(self._store)
        return self._memory

    @property
    def has_mappings(self) -> bool:
        """Whether any buffer was mapped."""
        return self._memory is not None

    def _stand_in(self, component: Component, reason: str) -> None:
        for key in component.keys:
            for name in self.names_of.get(key, ()):
                entry = self.manifest.names[name]
                self._bind(name, LostObject(name, entry.type_name, reason, entry.cell))


def _failure(error: Exception) -> str:
    lost = isinstance(error, StateLostError)
    return reason_of(error) if lost else f"loading it failed with {reason_of(error)}"

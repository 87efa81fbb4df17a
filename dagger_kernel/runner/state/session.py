"""One cell's view of the saved variables: restore lazily, save what changed."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import os
import sys
import time
import types
from dataclasses import replace
from typing import Any

from . import namespace as lazy
from .ambient import Ambient
from .ambient.places import assigned_attributes
from .ambient.providers import all_providers
from .bindings import Bindings
from .closing import CellRecord, Closing
from .errors import ManifestError
from .graph import Registry
from .imports import DottedImports
from .inspect import describe_manifest
from .loader import Loader
from .manifest import Manifest, load_manifest
from .modules import SavedModules
from .pending import Pending
from .rehearsal import rehearse_saving
from .remade import Remade
from .stage import Stage
from .static import Needs, needs_of_source
from .store import BlobStore


class StateSession:
    """One cell's view of the sandbox's saved variables.

    Parameters
    ----------
    root : path
        The state directory.
    namespace : dict
        The exact dictionary of the module registered as ``__main__``.
    """

    # What `open` makes.
    _bindings: Bindings
    _pending: Pending
    _ambient: Ambient
    _imports: DottedImports
    _remade: Remade
    _closing: Closing

    def __init__(self, root: str | os.PathLike[str], namespace: dict[str, Any]) -> None:
        self.root = os.fspath(root)
        self.namespace = namespace
        self.ended = "ok"
        """How the cell ended; set before :meth:`save`."""
        self.asked = False
        """Whether the cell asked for input; set before :meth:`save`."""
        self.abandon = False
        """Set to make :meth:`warm` stop before its next import."""
        self.secrets: dict[str, str] = {}
        """Names and values that must not be saved; set before :meth:`save`."""
        self._store = BlobStore(self.root)
        self._problem = ""
        self._began = False
        self._cell = CellRecord()
        self._needs = Needs()

    # --- before the cell --------------------------------------------------------------------

    def open(self) -> None:
        """Read what is saved and make the namespace lazy; loads no variable."""
        start = time.perf_counter()
        self._bindings = Bindings(self.namespace)
        home = ""
        with contextlib.suppress(OSError):
            home = os.getcwd()
        name, manifest = "", Manifest()
        try:
            name, manifest = load_manifest(self.root)
        except ManifestError as error:
            # Nothing can be restored, but the cell must still run; `save` reports it.
            self._problem = str(error)
        self._imports = DottedImports(manifest)
        # A variable may be named like something the shell put there.
        self._bindings.release([*manifest.unset, *manifest.names])
        registry = Registry(self.namespace)
        registry.sequence = manifest.sequence + 1
        loader = Loader(manifest, self._store, registry, self._bind)
        pending = self._pending = Pending(loader)
        loader.code_hook, loader.expose_hook = pending.code_loaded, pending.load_all
        saved = [key[2:] for key in loader.component_of if key.startswith("m:")]
        registry.managed_modules.update(saved)
        if saved:
            sys.meta_path.insert(0, SavedModules(loader))
        providers = all_providers(
            lambda: registry.managed_modules,
            pending.load_modules,
            lambda: assigned_attributes(self._needs, self.namespace),
            registry.patched,
        )
        self._ambient = Ambient(providers, pending.fetch_ambient)
        self._remade = Remade(Stage(home, self._store, self._bindings, pending, self._ambient))
        hooks = lazy.Hooks(self.namespace, self._remade.fetch, pending.names, pending.expose)
        lazy.install(hooks, [name for name in manifest.names if hasattr(builtins, name)])
        self._ambient.start()
        self._closing = Closing(
            name, self._store, loader, self._bindings, self._ambient, self._imports, self._remade
        )
        loader.seconds += time.perf_counter() - start

    def begin(
        self, source: str, *, cell: int, step: str, seed: bytes, recompute: bool = False
    ) -> None:
        """Restore ambient state and load what lazy lookup would miss.

        Parameters
        ----------
        source : str
            The cell as plain Python, after IPython's transformations.
        cell : int
            Its execution count.
        step : str
            Identity of the step in the log.
        seed : bytes
            Seeds random streams which were never saved.
        recompute : bool
            Whether every lost variable is made again when it is used, not only those the user asked
            for.
        """
        start = time.perf_counter()
        loader = self.loader
        before = loader.seconds
        self._cell = CellRecord(cell, step, source)
        loader.registry.cell = cell
        self._began = True
        self._ambient.begin(loader.manifest.ambient, seed)
        needs = self._needs = needs_of_source(source)
        self._imports.begin(source, needs.imports)
        self._remade.begin(loader.manifest, needs.reads | needs.names, every=recompute)
        self._pending.prefetch(needs)
        self._pending.load_owners(needs)
        self._ambient.expect()
        loader.seconds = before + time.perf_counter() - start

    def warm(self) -> None:
        """Import what the saved variables need, while the room is idle."""
        components = self.loader.manifest.components.values()
        for module in sorted({m for component in components for m in component.modules}):
            if self.abandon:
                return
            if module in sys.modules or f"m:{module}" in self.loader.component_of:
                continue
            try:
                importlib.import_module(module)
            except Exception:
                # The cell will meet the same error where it can be reported.
                continue

    def rehearse(self) -> None:
        """Touch what beginning and saving a cell touch, while the room is idle; no code of the user's runs."""
        self._ambient.rehearse()
        rehearse_saving()

    # --- what is there ----------------------------------------------------------------------

    @property
    def loader(self) -> Loader:
        """The saved side."""
        return self._pending.loader

    def names(self) -> list[str]:
        """Every user-visible variable, loaded or not."""
        found = {*self._bindings.own(), *self._pending.names()}
        return sorted(name for name in found if not name.startswith("_"))

    def saved_names(self) -> list[str]:
        """Every saved name which is not loaded, hidden ones too."""
        return self._pending.names()

    def describe(self) -> list[dict[str, Any]]:
        """List the saved variables without loading them."""
        return describe_manifest(self.loader.manifest)

    def _bind(self, name: str, value: Any) -> None:
        """Bind a loaded value, unless the cell bound the name first."""
        if issubclass(type(value), types.ModuleType):
            self._imports.repeat(value.__name__)
        self._bindings.bind(name, value)

    # --- variables made again ---------------------------------------------------------------

    def make_due(self) -> None:
        """Make again what the cell's source says it uses; when the cell can be interrupted."""
        self._remade.make_due()

    def recompute(self, name: str) -> list[int]:
        """Make a lost variable again, for this cell and for those that use it later.

        Parameters
        ----------
        name : str
            The variable.

        Returns
        -------
        list of int
            The cells which were run again; empty where the variable is not lost.

        Raises
        ------
        RecomputeError
            They may not, or cannot, run again; nothing has changed then.
        """
        return self._remade.ask(name)

    # --- after the cell ---------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Save what changed and report it; never raises for an object of the user's."""
        start = time.perf_counter()
        loader = self.loader
        report: dict[str, Any] = {
            "saved": [],
            "unchanged": 0,
            "lost": [],
            "deleted": [],
            "bytes_written": 0,
            "restore_ms": round(loader.seconds * 1e3, 3),
            "save_ms": 0.0,
            "loaded": sorted(set(loader.touched)),
        }
        try:
            with loader.lock:
                cell = replace(self._cell, ended=self.ended, asked=self.asked)
                outcome = self._closing.save(cell, began=self._began, secrets=self.secrets)
            report |= outcome.report()
            report["bytes_written"] = self._store.bytes_written
        except Exception as error:
            report["error"] = f"{type(error).__name__}: {error}"
        if self._problem:
            report["error"] = self._problem
        report["save_ms"] = round((time.perf_counter() - start) * 1e3, 3)
        return report

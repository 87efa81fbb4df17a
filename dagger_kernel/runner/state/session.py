"""One cell's view of the saved variables: restore lazily, save what changed."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import os
import sys
import time
import types
from typing import TYPE_CHECKING, Any

from . import namespace as lazy
from .ambient import Ambient
from .ambient.hooks import on_import
from .ambient.providers import all_providers
from .errors import ManifestError
from .graph import Registry
from .inspect import describe_manifest
from .loader import Loader
from .lost import LostObject
from .manifest import Manifest, load_manifest
from .modules import SavedModules, last_module, user_modules
from .past import PastLoader
from .remade import Remade
from .saver import Outcome, Saver
from .static import Needs, needs_of_code, needs_of_source
from .store import BlobStore
from .withheld import Withheld

if TYPE_CHECKING:
    from collections.abc import Iterator


class StateSession:
    """One cell's view of the sandbox's saved variables.

    Parameters
    ----------
    root : path
        The state directory.
    namespace : dict
        The exact dictionary of the module registered as ``__main__``.
    cell : int
        Execution count of the cell.
    step : str
        Identity of the step in the log.
    seed : bytes
        Seeds random streams which were never saved.
    at : str, optional
        Manifest to open instead of the latest: the state as an earlier step left it.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        namespace: dict[str, Any],
        *,
        cell: int = 0,
        step: str = "",
        seed: bytes = b"",
        at: str | None = None,
    ) -> None:
        self.at = at
        self.root = os.fspath(root)
        self.namespace = namespace
        self.cell = cell
        self.step = step
        self.seed = seed
        self.home = ""
        """The directory cells start in."""
        self.ended = "ok"
        """How the cell ended; set before :meth:`save`."""
        self.asked = False
        """Whether the cell asked for input; set before :meth:`save`."""
        self.abandon = False
        """Set to make :meth:`warm` stop before its next import."""
        self.secrets: dict[str, str] = {}
        """Names and values that must not be saved; set before :meth:`save`."""
        self._store = BlobStore(self.root)
        self._base: dict[str, Any] = {}
        self._last_module = ""
        self._assigned: set[str] = set()
        self._imports: set[str] = set()
        self._manifest = Manifest()
        self._manifest_name = ""
        self._loader: Loader | None = None
        self._ambient: Ambient | None = None
        self._began = False
        self._problem = ""
        self._source = ""
        self._remade = Remade(self)
        self._held: dict[str, Any] | None = None

    # --- before the cell --------------------------------------------------------------------

    def open(self) -> None:
        """Read what is saved and make the namespace lazy; loads no variable."""
        start = time.perf_counter()
        self._base = dict(self.namespace)
        with contextlib.suppress(OSError):
            self.home = os.getcwd()
        try:
            self._manifest_name, self._manifest = load_manifest(self.root, self.at)
        except ManifestError as error:
            # Nothing can be restored, but the cell must still run; `save` reports it.
            self._problem = str(error)
        self._imports = set(map(str, self._manifest.ambient.get("imports", ())))
        for name in self._manifest.unset:
            self.namespace.pop(name, None)
        for name in self._manifest.names:
            # A variable may be named like something the shell put there.
            self.namespace.pop(name, None)
        self._last_module = last_module()
        registry = Registry(self.namespace)
        registry.sequence = self._manifest.sequence + 1
        self._loader = Loader(self._manifest, self._store, registry, self._bind)
        self._loader.code_hook = self._code_loaded
        self._loader.expose_hook = self.load_all
        saved = [key[2:] for key in self._loader.component_of if key.startswith("m:")]
        registry.managed_modules.update(saved)
        if saved:
            sys.meta_path.insert(0, SavedModules(self._loader))
        hooks = lazy.Hooks(self.namespace, self._fetch, self._all_names, self._expose)
        shadowed = [name for name in self._manifest.names if hasattr(builtins, name)]
        lazy.install(hooks, shadowed)
        providers = all_providers(
            lambda: registry.managed_modules, self._load_modules, self._assigned_attributes
        )
        self._ambient = Ambient(providers, self.fetch_ambient)
        self._ambient.start()
        self._loader.seconds += time.perf_counter() - start

    def begin(
        self, source: str, *, cell: int, step: str, seed: bytes, recompute: bool = False
    ) -> None:
        """Restore ambient state and load what lazy lookup would miss.

        Parameters
        ----------
        source : str
            The cell as plain Python, after IPython's transformations.
        cell, step, seed
            As in the constructor.
        recompute : bool
            Whether every lost variable is made again when it is used, not only those the user asked
            for.
        """
        start = time.perf_counter()
        loader = self.loader
        before = loader.seconds
        self.cell, self.step, self.seed = cell, step, seed
        loader.registry.cell = cell
        self._began = True
        self._source = source
        assert self._ambient is not None
        self._ambient.begin(self._manifest.ambient, seed)
        needs = needs_of_source(source)
        self._assigned = {path for path in needs.assigned if path}
        for package in {module.partition(".")[0] for module in self._imports}:
            if package in source:
                on_import(package, functools.partial(self._import_parts, package))
        self._imports |= needs.imports
        self._remade.begin(self._manifest, needs.reads | needs.names, every=recompute)
        self.prefetch(needs)
        loader.seconds = before + time.perf_counter() - start

    def warm(self) -> None:
        """Import what the saved variables need, while the room is idle."""
        wanted = {m for component in self._manifest.components.values() for m in component.modules}
        for module in sorted(wanted):
            if self.abandon:
                return
            if module in sys.modules or f"m:{module}" in self.loader.component_of:
                continue
            try:
                importlib.import_module(module)
            except Exception:
                # The cell will meet the same error where it can be reported.
                continue

    # --- what is there ----------------------------------------------------------------------

    @property
    def loader(self) -> Loader:
        """The saved side."""
        if self._loader is None:
            raise RuntimeError("StateSession.open() was not called")
        return self._loader

    def names(self) -> list[str]:
        """Every user-visible variable, loaded or not."""
        live = {
            name
            for name, value in self.namespace.items()
            if name not in self._base or self._base[name] is not value
        }
        lazily = {n for n in self._manifest.names if self._is_pending(n)}
        return sorted(n for n in live | lazily if not n.startswith("_"))

    def describe(self) -> list[dict[str, Any]]:
        """List the saved variables without loading them."""
        return describe_manifest(self._manifest)

    def load_all(self) -> None:
        """Load every variable."""
        loader = self.loader
        with loader.lock:
            for name, entry in self._manifest.names.items():
                if name not in self.namespace and self._is_pending(name):
                    loader.load(loader.component_of[entry.key])

    def prefetch(self, needs: Needs) -> None:
        """Load what lazy lookup would miss."""
        if needs.everything:
            self.load_all()
        else:
            self._prefetch(needs.names)

    def _fetch(self, name: str) -> Any:
        __tracebackhide__ = True
        return self.loader.fetch(name) if self.repeating else self._remade.fetch(name)

    def _expose(self) -> None:
        """Load everything, as the dictionary of globals is handed to the user's code."""
        self.loader.exposed = True
        self.load_all()

    def _load_modules(self) -> None:
        for key in list(self.loader.component_of):
            if key.startswith("m:"):
                self.loader.resolve(key)

    def _assigned_attributes(self) -> list[tuple[Any, str]]:
        """Modules and classes whose attributes the cell assigned, as far as they are in memory."""
        found = []
        for path in sorted(self._assigned):
            *owners, attribute = path.split(".")
            owner: Any = self.namespace.get(owners[0])
            for part in owners[1:]:
                # Only through modules and classes: looking further could run user code.
                if not isinstance(owner, type | types.ModuleType):
                    break
                owner = vars(owner).get(part)
            if isinstance(owner, type | types.ModuleType):
                found.append((owner, attribute))
        return found

    def _is_pending(self, name: str) -> bool:
        entry = self._manifest.names.get(name)
        if entry is None:
            return False
        cid = self.loader.component_of.get(entry.key)
        return cid is not None and cid not in self.loader.loaded

    def _all_names(self) -> list[str]:
        return [name for name in self._manifest.names if self._is_pending(name)]

    def _prefetch(self, names: set[str]) -> None:
        loader = self.loader
        with loader.lock:
            for name in sorted(names):
                if name not in self.namespace and self._is_pending(name):
                    loader.load(loader.component_of[self._manifest.names[name].key])

    def _code_loaded(self, code: types.CodeType) -> None:
        needs = needs_of_code(code)
        if needs.everything:
            self._prefetch(set(self._manifest.names))
        else:
            self._prefetch(needs.names & set(self._manifest.names))

    def saved_names(self) -> list[str]:
        """Every saved name which is not loaded, hidden ones too."""
        return self._all_names()

    def _bind(self, name: str, value: Any) -> None:
        """Bind a loaded value, unless the cell bound the name first."""
        if issubclass(type(value), types.ModuleType):
            self._import_parts(value.__name__)
        (self.namespace if self._held is None else self._held).setdefault(name, value)

    def _import_parts(self, package: str) -> None:
        """Repeat ``import a.b`` of earlier cells, which made ``b`` an attribute of ``a``."""
        for module in sorted(self._imports):
            if module.partition(".")[0] == package and module not in sys.modules:
                try:
                    importlib.import_module(module)
                except Exception:
                    continue

    def fetch_ambient(self, key: str) -> Any:
        """Give the value of an ``a:`` node; None when there is none."""
        loader = self.loader
        cid = loader.component_of.get(key)
        if cid is None:
            return None
        if cid not in loader.loaded:
            loader.load(cid)
        value = loader.values.get(key)
        return None if type(value) is LostObject else value

    # --- cells which run again --------------------------------------------------------------

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

    @property
    def environment(self) -> dict[str, str] | None:
        """The environment before any change of the user's; None before :meth:`begin`."""
        assert self._ambient is not None
        return self._ambient.environment

    @property
    def repeating(self) -> bool:
        """Whether an earlier cell runs again at the moment."""
        return self._held is not None

    @contextlib.contextmanager
    def aside(self) -> Iterator[dict[str, Any]]:
        """Put the cell's variables aside; what is loaded meanwhile for them joins them after."""
        namespace, saved = self.namespace, dict(self.namespace)
        held = self._held = {}
        namespace.clear()
        namespace.update(self._base, __builtins__=saved["__builtins__"])
        try:
            yield namespace
        finally:
            namespace.clear()
            namespace.update(saved)
            self._held = None
            for name, value in held.items():
                namespace.setdefault(name, value)

    @contextlib.contextmanager
    def seeing(self, at: str) -> Iterator[PastLoader]:
        """Make absent names mean what they meant after an earlier step ("": before the first)."""
        live, manifest = self.loader, self._manifest
        _, self._manifest = load_manifest(self.root, at)
        past = PastLoader(self._manifest, self._store, self.namespace.setdefault, live)
        past.code_hook, past.expose_hook = self._code_loaded, self.load_all
        self._loader = past
        for name in self._manifest.unset:
            self.namespace.pop(name, None)
        try:
            yield past
        finally:
            self._loader, self._manifest = live, manifest

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
                outcome = self._save()
            report["saved"] = [name for name in outcome.saved if not name.startswith("_")]
            report["unchanged"] = outcome.unchanged
            report["lost"] = outcome.lost
            report["deleted"] = sorted(outcome.deleted)
            report["bytes_written"] = self._store.bytes_written
        except Exception as error:
            report["error"] = f"{type(error).__name__}: {error}"
        if self._problem:
            report["error"] = self._problem
        report["save_ms"] = round((time.perf_counter() - start) * 1e3, 3)
        return report

    def _save(self) -> Outcome:
        loader = self.loader
        loader.registry.cell = self.cell
        names = {
            name: value
            for name, value in self.namespace.items()
            if isinstance(name, str)
            and name != "__builtins__"
            and not (name in self._base and self._base[name] is value)
            and not self._is_unreadable(name, value)
        }
        gone = {
            name
            for name, entry in self._manifest.names.items()
            if name not in self.namespace and loader.component_of.get(entry.key) in loader.loaded
        }
        assert self._ambient is not None
        loader.registry.managed_modules |= user_modules(self._last_module)
        plain, nodes = self._ambient.capture(loader.values)
        withheld = Withheld(self.secrets)
        plain = withheld.without(plain)
        saver = Saver(loader, self._store, exposed=loader.exposed, withheld=withheld)
        outcome = saver.save(names, nodes, self.cell, gone)
        manifest = outcome.manifest
        manifest.parent = self._manifest_name
        manifest.step = self.step
        manifest.lineage = {
            # Who looked at a stand-in saw nothing of the variable.
            "read": sorted(set(loader.touched) - self._remade.unseen),
            "written": [name for name in outcome.saved if not name.startswith("_")],
            "deleted": sorted(outcome.deleted),
            "source": self._source,
        }
        if self.ended != "ok":
            manifest.lineage["ended"] = self.ended
        if self.asked:
            manifest.lineage["asked"] = True
        manifest.remade = self._remade.still(manifest)
        manifest.ambient = plain if self._began else self._manifest.ambient
        imports = sorted(name for name in self._imports if self._is_needed(name, manifest))
        if imports:
            manifest.ambient["imports"] = imports
        manifest.unset = sorted(
            (set(self._manifest.unset) | set(self._base))
            - set(self.namespace)
            - set(manifest.names)
        )
        self._finish(manifest)
        return outcome

    def _is_needed(self, module: str, manifest: Manifest) -> bool:
        """Whether a dotted import must be repeated where its package is loaded."""
        known = module in sys.modules or module in self._manifest.ambient.get("imports", ())
        return known and module.partition(".")[0] in manifest.names

    def _is_unreadable(self, name: str, value: Any) -> bool:
        """Whether a name still stands for saved bytes which could not be read this time."""
        entry = self._manifest.names.get(name)
        return (
            type(value) is LostObject
            and entry is not None
            and self.loader.component_of.get(entry.key) in self.loader.failed
        )

    def _finish(self, manifest: Manifest) -> None:
        data = manifest.to_json()
        from .store import digest

        self._store.write_manifest(f"{manifest.sequence:06d}-{digest(data)[:16]}.json", data)

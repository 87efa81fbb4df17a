"""The end of a cell: what it left in memory is saved, with a record of the cell itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .imports import KEY
from .modules import last_module, user_modules
from .saver import Saver
from .store import digest
from .withheld import Withheld

if TYPE_CHECKING:
    from .ambient import Ambient
    from .bindings import Bindings
    from .imports import DottedImports
    from .loader import Loader
    from .outcome import Outcome
    from .remade import Remade
    from .store import BlobStore


@dataclass
class CellRecord:
    """What is known about a cell.

    Attributes
    ----------
    number : int
        Its execution count.
    step : str
        Identity of the step in the log.
    source : str
        Its plain Python.
    ended : str
        How it ended: "ok" or the status of the reply.
    asked : bool
        Whether it asked for input.
    """

    number: int = 0
    step: str = ""
    source: str = ""
    ended: str = "ok"
    asked: bool = False


class Closing:
    """Saves what one cell left.

    Parameters
    ----------
    parent : str
        The manifest which the cell began with; "" when nothing was saved.
    store : BlobStore
        Where it is saved.
    loader : Loader
        The saved side, with what was loaded.
    bindings : Bindings
        The live side.
    ambient : Ambient
        The state of libraries and interpreter.
    imports : DottedImports
        What is imported again in later cells.
    remade : Remade
        The lost variables.
    """

    def __init__(
        self,
        parent: str,
        store: BlobStore,
        loader: Loader,
        bindings: Bindings,
        ambient: Ambient,
        imports: DottedImports,
        remade: Remade,
    ) -> None:
        self._parent = parent
        self._store = store
        self._loader = loader
        self._bindings = bindings
        self._ambient = ambient
        self._imports = imports
        self._remade = remade
        self._last_module = last_module()

    def save(self, cell: CellRecord, *, began: bool, secrets: dict[str, str]) -> Outcome:
        """Save variables and ambient state, and make the result the latest state.

        Parameters
        ----------
        cell : CellRecord
            The cell.
        began : bool
            Whether the saved ambient state was put in force, so that it may have changed.
        secrets : dict
            Names and values that must not be saved.
        """
        loader, namespace = self._loader, self._bindings.namespace
        loader.registry.cell = cell.number
        names = {
            name: value
            for name, value in self._bindings.own().items()
            if not loader.is_unreadable(name, value)
        }
        gone = {
            name
            for name, entry in loader.manifest.names.items()
            if name not in namespace and loader.component_of.get(entry.key) in loader.loaded
        }
        loader.registry.managed_modules |= user_modules(self._last_module)
        plain, nodes = self._ambient.capture(loader.values)
        withheld = Withheld(secrets)
        saver = Saver(loader, self._store, exposed=loader.exposed, withheld=withheld)
        outcome = saver.save(names, nodes, cell.number, gone)
        old, manifest = loader.manifest, outcome.manifest
        manifest.parent, manifest.step = self._parent, cell.step
        manifest.lineage = self._lineage(cell, outcome)
        manifest.remade = self._remade.still(manifest)
        manifest.ambient = withheld.without(plain) if began else old.ambient
        if imports := self._imports.kept(manifest):
            manifest.ambient[KEY] = imports
        manifest.unset = self._bindings.unset(old, manifest)
        data = manifest.to_json()
        self._store.write_manifest(f"{manifest.sequence:06d}-{digest(data)[:16]}.json", data)
        return outcome

    def _lineage(self, cell: CellRecord, outcome: Outcome) -> dict[str, Any]:
        """What is needed to run the cell again."""
        lineage: dict[str, Any] = {
            # Who looked at a stand-in saw nothing of the variable.
            "read": sorted(set(self._loader.touched) - self._remade.unseen),
            "written": outcome.written,
            "deleted": sorted(outcome.deleted),
            "source": cell.source,
        }
        if cell.ended != "ok":
            lineage["ended"] = cell.ended
        if cell.asked:
            lineage["asked"] = True
        return lineage

"""What is saved and not in memory, and what of it is loaded before code asks."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from .lost import LostObject
from .static import Needs, needs_of_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .loader import Loader


class Pending:
    """What waits to be loaded in a session.

    Parameters
    ----------
    loader : Loader
        The saved side; another one takes its place while a cell runs again.
    """

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def __contains__(self, name: str) -> bool:
        entry = self.loader.manifest.names.get(name)
        if entry is None:
            return False
        cid = self.loader.component_of.get(entry.key)
        return cid is not None and cid not in self.loader.loaded

    def names(self) -> list[str]:
        """Every name whose value was not loaded, hidden ones too."""
        return [name for name in self.loader.manifest.names if name in self]

    def load(self, names: Iterable[str]) -> None:
        """Load those of these names which are absent."""
        loader = self.loader
        with loader.lock:
            for name in sorted(names):
                if name not in loader.namespace and name in self:
                    loader.load(loader.component_of[loader.manifest.names[name].key])

    def load_all(self) -> None:
        """Load every variable."""
        self.load(self.loader.manifest.names)

    def prefetch(self, needs: Needs) -> None:
        """Load what lazy lookup would miss."""
        self.load(self.loader.manifest.names if needs.everything else needs.names)

    def load_owners(self, needs: Needs) -> None:
        """Load the modules and classes whose attributes are assigned to."""
        names = self.loader.manifest.names
        roots = {path.partition(".")[0] for path in needs.assigned} & names.keys()
        self.load(name for name in roots if names[name].type_name in ("module", "type"))

    def code_loaded(self, code: types.CodeType) -> None:
        """Load what lazy lookup would miss when a function with this code is called."""
        self.prefetch(needs_of_code(code))

    def expose(self) -> None:
        """Load everything, as the dictionary of globals is handed to the user's code."""
        self.loader.exposed = True
        self.load_all()

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

    def load_modules(self) -> None:
        """Load the saved modules of the user's."""
        for key in list(self.loader.component_of):
            if key.startswith("m:"):
                self.loader.resolve(key)

"""``import a.b`` of earlier cells, which made the module ``b`` an attribute of ``a``."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING

from .ambient.hooks import on_import

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .manifest import Manifest

KEY = "imports"
"""Where the manifest keeps them, beside the ambient state."""


class DottedImports:
    """Repeats dotted imports where their package is imported or loaded again.

    Parameters
    ----------
    manifest : Manifest
        The state before the cell.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._saved = {str(module) for module in manifest.ambient.get(KEY, ())}
        self._modules = set(self._saved)

    def begin(self, source: str, added: Iterable[str]) -> None:
        """Wait for the packages which a cell names, and add its own dotted imports."""
        for package in {module.partition(".")[0] for module in self._modules}:
            if package in source:
                on_import(package, functools.partial(self.repeat, package))
        self._modules.update(added)

    def repeat(self, package: str) -> None:
        """Import the modules below a package again."""
        for module in sorted(self._modules):
            if module.partition(".")[0] == package and module not in sys.modules:
                try:
                    importlib.import_module(module)
                except Exception:
                    # The cell will meet the same error where it uses the module.
                    continue

    def kept(self, manifest: Manifest) -> list[str]:
        """Give those which later cells need: their package has a name in the new state."""
        return sorted(
            module
            for module in self._modules
            if (module in sys.modules or module in self._saved)
            and module.partition(".")[0] in manifest.names
        )

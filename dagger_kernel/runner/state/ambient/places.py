"""Places of libraries: attributes of their modules and classes, by name."""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..static import Needs


def assigned_attributes(
    needs: Needs, namespace: Mapping[str, Any]
) -> list[tuple[type | types.ModuleType, str]]:
    """Find the modules and classes, as far as they are in memory, whose attributes a cell assigns.

    Parameters
    ----------
    needs : Needs
        What its source says.
    namespace : mapping
        What the first part of a path is looked up in; a function may import it instead.
    """
    found = []
    for path in sorted(path for path in needs.assigned if path):
        root, *owners, attribute = path.split(".")
        owner: Any = namespace.get(root, sys.modules.get(needs.modules.get(root, root)))
        for part in owners:
            # Only through modules and classes: looking further could run user code.
            if not isinstance(owner, type | types.ModuleType):
                break
            owner = vars(owner).get(part)
        if isinstance(owner, type | types.ModuleType):
            found.append((owner, attribute))
    return found


def place_of(owner: type | types.ModuleType) -> tuple[str, str] | None:
    """Module and path of a library's module or class; None where it cannot be found again."""
    if isinstance(owner, type):
        module, path = owner.__module__, owner.__qualname__
    else:
        module, path = getattr(owner, "__name__", ""), ""
    if module in ("__main__", "builtins"):
        return None
    return (module, path) if find_owner(module, path) is owner else None


def find_owner(module: str, path: str) -> Any:
    """Find a module, or a class in it, if the module is loaded."""
    if module not in sys.modules:
        return None
    found: Any = importlib.import_module(module)
    for part in path.split(".") if path else ():
        found = getattr(found, part, None)
    return found if isinstance(found, type | types.ModuleType) else None


def dotted(path: str, attribute: str) -> str:
    """The path of an attribute."""
    return f"{path}.{attribute}" if path else attribute

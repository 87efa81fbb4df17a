"""Objects of libraries: saved as the library defines, or by name where a process has one of them."""

from __future__ import annotations

import copyreg
import sys
from typing import TYPE_CHECKING, Any, cast

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..patched import find_importable
from ..pickler import type_label
from .layout import refuse_hidden_type, with_attributes

if TYPE_CHECKING:
    from ..pickler import StatePickler


def reduce_foreign(pickler: StatePickler, value: Any) -> Any:
    """Save an object of a library the way that library defines."""
    kind = type(value)
    if pickler.registry.refused and type_label(kind) in pickler.registry.refused:
        raise CannotPersistError(pickler.registry.refused[type_label(kind)])
    place = pickler.registry.place_of(value)
    if place is not None:
        return pickler.by_name(value, *place)
    special = copyreg.dispatch_table.get(kind)
    # Asked of the type: a proxy would answer with the recipe of what it stands for.
    recipe = special(value) if special is not None else cast("Any", kind).__reduce_ex__(value, 5)
    if isinstance(recipe, str):
        module = getattr(value, "__module__", None) or kind.__module__
        found = find_importable(module, recipe)
        if module == "__main__" or pickler.registry.module_key(module) is not None:
            raise CannotPersistError("its type can only be saved by name, and names change")
        if found is not value:
            raise CannotPersistError(f"it says it is {module}.{recipe}, which is something else")
        return pickler.by_name(value, module, recipe)
    if not isinstance(recipe, tuple) or not 2 <= len(recipe) <= 6:
        raise CannotPersistError("its __reduce__ does not give a pickle recipe")
    if recipe[0] is copyreg.__newobj__:  # type: ignore[attr-defined]
        refuse_hidden_type(kind, pickler.registry)
    if len(recipe) == 2 or recipe[2] is None:
        recipe = with_attributes(value, recipe, pickler.registry)
    pickler.foreign.add(type_label(kind))
    module = kind.__module__
    if isinstance(module, str) and module != "builtins":  # sympy's functions say None
        pickler.modules.add(module)
    return recipe


_SINGLETONS = (
    ("os", "environ"), ("os", "environb"), ("sys", "path"), ("sys", "argv"), ("sys", "modules"),
    ("sys", "meta_path"), ("sys", "path_hooks"), ("sys", "flags"), ("warnings", "filters"),
    ("random", "_inst"), ("math", "nan"), ("numpy", "nan"), ("json.decoder", "NaN"), ("numpy.random.mtrand", "_rand"), ("matplotlib", "rcParams"),
    ("matplotlib", "colormaps"), ("pandas", "options"), ("logging", "root"), ("plotly.io", "renderers"),
    ("plotly.io", "templates"), ("polars", "Config"), ("builtins", "__dict__"),
)  # fmt: skip
"""Objects of which there is one in a process; a variable may name them, but never own them."""


def singletons() -> dict[int, tuple[str, str]]:
    """Module and path of the singletons of loaded libraries, by id."""
    found = {}
    for module, path in _SINGLETONS:
        if module in sys.modules:
            value = getattr(sys.modules[module], path, None)
            if value is not None:
                found[id(value)] = (module, path)
    return found


class ByName:
    """Saved in the place of a plain list or dictionary which belongs to a library."""

    def __init__(self, module: str, path: str) -> None:
        self.module = module
        self.path = path


@reduces(ByName)
def reduce_by_name(pickler: StatePickler, value: ByName) -> Any:
    """Save a library's own object as its name."""
    return pickler.by_name(value, value.module, value.path)

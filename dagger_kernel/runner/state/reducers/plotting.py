"""Transforms of matplotlib."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..rebuild import rebuilder
from .foreign import reduce_foreign

if TYPE_CHECKING:
    from ..pickler import StatePickler


@reduces("matplotlib.transforms.TransformNode")
def reduce_transform(pickler: StatePickler, value: Any) -> Any:
    """Save a transform with its parents in order.

    matplotlib keeps the parents, which a change must invalidate, by their addresses, and its pickles keep
    those of the old process: a new parent at such an address would take an old one's place.
    """
    recipe = reduce_foreign(pickler, value)
    if not (isinstance(recipe, tuple) and len(recipe) > 2 and isinstance(recipe[2], dict)):
        return recipe
    rebuild, arguments, state, *_ = recipe
    parents = [parent for parent in state.get("_parents", {}).values() if parent is not None]
    state = {**state, "_parents": dict(enumerate(parents))}
    return (rebuild, arguments, state, None, None, restore_transform)


@rebuilder
def restore_transform(transform: Any, state: dict[str, Any]) -> None:
    """Fill a transform, its parents by their addresses in this process."""
    parents = state["_parents"].values()
    transform.__setstate__(state)
    transform._parents = {}
    for parent in parents:
        # Not the parent's own method: it may be half made.
        sys.modules["matplotlib.transforms"].TransformNode.set_children(parent, transform)

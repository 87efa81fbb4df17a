"""Which cells made a variable, and the state they saw.

Every step records the names it read, wrote and deleted, and every step's state
stays in the layers below. So an object which cannot live on can be made again:
its cells run in order, on the values they really had.
"""

from __future__ import annotations

import os
from typing import Any

from .manifest import Manifest, load_manifest
from .session import StateSession


def history(root: str | os.PathLike[str]) -> list[tuple[str, Manifest]]:
    """Give the manifests of all steps, oldest first.

    Parameters
    ----------
    root : path
        The state directory.
    """
    found: list[tuple[str, Manifest]] = []
    seen: set[str] = set()
    name, manifest = load_manifest(os.fspath(root))
    while name and name not in seen:
        seen.add(name)
        found.append((name, manifest))
        if not manifest.parent:
            break
        name, manifest = load_manifest(os.fspath(root), manifest.parent)
    return found[::-1]


def recompute_plan(root: str | os.PathLike[str], name: str) -> list[dict[str, Any]]:
    """Tell which steps to run again to make a variable, oldest first.

    Parameters
    ----------
    root : path
        The state directory.
    name : str
        The variable.

    Returns
    -------
    list of dict
        ``step``, ``cell``, ``reads`` and ``at`` (the manifest before the step, for
        :func:`open_inputs`). The first step made the variable, the others touched it.

    Raises
    ------
    KeyError
        No step made such a variable.
    """
    steps = history(root)
    start = None
    for number, (_, manifest) in enumerate(steps):
        lineage = manifest.lineage
        if name in lineage.get("deleted", ()):
            start = None
        elif name in lineage.get("written", ()) and name not in lineage.get("read", ()):
            start = number  # bound anew, without looking at what it was
    if start is None:
        raise KeyError(name)
    plan = []
    for number in range(start, len(steps)):
        manifest = steps[number][1]
        lineage = manifest.lineage
        if number == start or name in lineage.get("read", ()):
            entry = {"step": manifest.step, "cell": manifest.cell, "at": manifest.parent}
            plan.append({**entry, "reads": list(lineage.get("read", ()))})
    return plan


def open_inputs(root: str | os.PathLike[str], at: str, namespace: dict[str, Any]) -> StateSession:
    """Make a scratch namespace show the variables as they were before a step.

    Parameters
    ----------
    root : path
        The state directory.
    at : str
        A manifest, as a plan names it; "" is the empty state.
    namespace : dict
        A scratch namespace; it is made lazy like that of a cell.
    """
    session = StateSession(root, namespace, at=at)
    session.open()
    return session

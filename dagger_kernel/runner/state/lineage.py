"""Which cells made a variable, and which files changed meanwhile.

Every step records the names it read, wrote and deleted and its source, and every
step's state stays in the layers below. So an object which cannot live on can be
made again: its cells run in order, on the values they really had.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .manifest import Manifest, load_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

CHANGES = "changes"
"""Directory of the lists of files which steps changed; see `runner.files`."""


@dataclass(frozen=True)
class PastStep:
    """A step which made or touched a variable.

    Attributes
    ----------
    before, after : str
        The manifests it started from and ended with; "" is the empty state.
    manifest : Manifest
        What it left.
    """

    before: str
    after: str
    manifest: Manifest

    @property
    def cell(self) -> int:
        """Its execution count."""
        return self.manifest.cell

    @property
    def source(self) -> str:
        """Its plain Python."""
        return str(self.manifest.lineage.get("source", ""))


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


def rebound(name: str, steps: Iterable[tuple[str, Manifest]]) -> bool:
    """Whether one of these steps bound or deleted a name without looking at what it was."""
    return any(
        name in manifest.lineage.get("deleted", ())
        or (
            name in manifest.lineage.get("written", ())
            and name not in manifest.lineage.get("read", ())
        )
        for _, manifest in steps
    )


def recompute_plan(steps: list[tuple[str, Manifest]], names: Iterable[str]) -> list[PastStep]:
    """Tell which steps to run again to make variables, oldest first.

    Parameters
    ----------
    steps : list
        As :func:`history` gives them.
    names : iterable of str
        The variables; they are made together.

    Returns
    -------
    list of PastStep
        The first one made a variable, the others made or touched one.

    Raises
    ------
    KeyError
        No step made such a variable.
    """
    wanted = set(names)
    starts = []
    for name in sorted(wanted):
        numbers = [n for n, step in enumerate(steps) if rebound(name, [step])]
        if not numbers or name in steps[numbers[-1]][1].lineage.get("deleted", ()):
            raise KeyError(name)
        starts.append(numbers[-1])
    plan = []
    for number in range(min(starts), len(steps)):
        name, manifest = steps[number]
        touched = {*manifest.lineage.get("read", ()), *manifest.lineage.get("written", ())}
        if touched & wanted:
            plan.append(PastStep(manifest.parent, name, manifest))
    return plan


def changed_files(root: str | os.PathLike[str]) -> list[tuple[int, str, list[str]]]:
    """Tell which steps changed files, oldest first.

    Parameters
    ----------
    root : path
        The state directory.

    Returns
    -------
    list of tuple
        The sequence number of the state when the step ended, the step, and the paths.
    """
    folder = os.path.join(os.fspath(root), CHANGES)
    found = []
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        number, _, step = entry.removesuffix(".json").partition("-")
        if number.isdigit():
            with open(os.path.join(folder, entry), encoding="ascii") as stream:
                found.append((int(number), step, [str(path) for path in json.load(stream)]))
    return found

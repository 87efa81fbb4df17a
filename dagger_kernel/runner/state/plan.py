"""Which cells must run again to make a lost variable, and whether they may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import RecomputeError
from .lineage import PastStep, changed_files, history, recompute_plan

if TYPE_CHECKING:
    from .loader import Loader


class Plan:
    """The cells that make a variable.

    Parameters
    ----------
    live : Loader
        The running cell's.
    root : str
        The state directory.
    name : str
        The lost variable.
    """

    def __init__(self, live: Loader, root: str, name: str) -> None:
        self._live = live
        self._root = root
        self._name = name
        self.history = history(root)
        """All steps, as :func:`.lineage.history` gives them."""
        manifest = live.manifest
        if name not in manifest.names:
            raise self.refusal("there is no such variable")
        self._lost = {entry["name"] for entry in manifest.lost} & manifest.names.keys() | {name}
        self.names = self._together(name)
        """The variables which are made together."""

    @property
    def components(self) -> set[str]:
        """What of the saved state the lost variables stand for."""
        found = (self.component(other) for other in self.names & self._lost)
        return {cid for cid in found if cid is not None}

    def component(self, name: str) -> str | None:
        """Give the component a variable is saved in."""
        entry = self._live.manifest.names.get(name)
        return self._live.component_of.get(entry.key) if entry is not None else None

    def refusal(self, why: str) -> RecomputeError:
        """Make the error which says that the variable is not made again."""
        return RecomputeError(self._name, why)

    def steps(self) -> list[PastStep]:
        """Find the cells, oldest first.

        Raises
        ------
        RecomputeError
            They are not known, or may not run again.
        """
        found = self._find()
        self._check(found)
        return found

    def _together(self, name: str) -> set[str]:
        """Names of the variables which are saved together."""
        cid = self.component(name)
        keys = self._live.manifest.components[cid].keys if cid is not None else ()
        return {name, *(other for key in keys for other in self._live.names_of.get(key, ()))}

    def _find(self) -> list[PastStep]:
        """Find the cells to run; what they use and is lost too must be made with them."""
        manifests = dict(self.history)
        needed = self._name
        while True:
            try:
                plan = recompute_plan(self.history, self.names)
            except KeyError:
                why = "no cell is known which made it"
                if needed != self._name:
                    why = f"its cells use '{needed}', which is lost too and cannot be made again"
                raise self.refusal(why) from None
            for step in plan:
                before = manifests.get(step.before)
                lost = {entry["name"] for entry in before.lost} if before is not None else set()
                more = lost & set(step.manifest.lineage.get("read", ())) - self.names
                if more:
                    needed = min(more)
                    self.names |= self._together(needed)
                    break
            else:
                return plan

    def _check(self, plan: list[PastStep]) -> None:
        changes = changed_files(self._root)
        writers = {step: paths for _, step, paths in changes}
        for step in plan:
            lineage, cell = step.manifest.lineage, f"cell [{step.cell}]"
            if paths := writers.get(step.manifest.step):
                raise self.refusal(f"{cell} changed files ({_some(paths)})")
            if lineage.get("ended", "ok") != "ok":
                raise self.refusal(f"{cell} did not end well")
            if lineage.get("asked"):
                raise self.refusal(f"{cell} asked for input")
            if not step.source:
                raise self.refusal(f"the source of {cell} is not known")
            if module := self._changed_module(step):
                raise self.refusal(f"{cell} uses the module {module}, which has changed since")

    def _changed_module(self, step: PastStep) -> str | None:
        """A user's module which the step's source names and which is not what it was."""
        now = self._live.manifest.components
        for cid, component in step.manifest.components.items():
            for key in component.keys:
                if key.startswith("m:") and now.get(cid) != component and key[2:] in step.source:
                    return key[2:]
        return None


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")

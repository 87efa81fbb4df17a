"""Makes a lost variable again: its cells run once more, on the values they really had.

They run in the room of the cell that wants the variable, for an object which cannot
be saved can only ever live there. Their namespace is that of ``__main__`` as it was
before them, put aside again when they are done; only the variable is brought along.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .graph import is_linkable
from .lineage import PastStep, changed_files, rebound
from .lost import LostObject
from .past import PastLoader, Surroundings
from .plan import Plan
from .static import needs_of_source
from .watch import watching

if TYPE_CHECKING:
    from .stage import Stage

MAX_REACHED = 2_000_000
"""Objects looked at to find what a value shares with variables."""


class Recompute:
    """One making again.

    Parameters
    ----------
    stage : Stage
        Where cells run again.
    name : str
        The lost variable. Variables saved together with it are made together with it.
    """

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._live = stage.loader
        self._plan = Plan(stage.loader, stage.root, name)
        self._name = name
        self.cells: list[int] = []
        self._adopted: dict[str, dict[str, Any]] = {}

    def run(self) -> dict[str, Any]:
        """Run the cells again and give the values of :attr:`names`.

        Raises
        ------
        RecomputeError
            The cells may not, or cannot, run again; nothing has changed then.
        """
        if threading.current_thread() is not threading.main_thread():
            raise self._plan.refusal("it is used in a thread")
        plan = self._plan.steps()
        made: dict[str, Any] = {}
        with self._stage.aside() as namespace:
            base = dict(namespace)
            surroundings = Surroundings(self._stage.home, self._stage.environment)
            with surroundings, quiet():
                for step in plan:
                    namespace.clear()
                    namespace.update(base)
                    made = self._repeat(step, made, surroundings)
        self.cells = [step.cell for step in plan]
        lost = [name for name, value in made.items() if type(value) is LostObject]
        if self._name not in made or self._name in lost:
            raise self._plan.refusal(f"cell [{self.cells[0]}] did not make it this time")
        equal = [(cid, self._values(cid, found)) for cid, found in self._adopted.items()]
        remade = self._plan.components
        equal += [(cid, self._values(cid, made)) for cid in remade]
        for cid, values in equal:
            self._live.adopt(cid, values)
        return {other: made[other] for other in self.names if self._plan.component(other) in remade}

    @property
    def names(self) -> set[str]:
        """The variables which are made together."""
        return self._plan.names

    # --- one cell -------------------------------------------------------------------------

    def _repeat(
        self, step: PastStep, made: dict[str, Any], surroundings: Surroundings
    ) -> dict[str, Any]:
        """Run a cell on what it saw, with what was made so far; give the variables made."""
        stage, cell = self._stage, f"cell [{step.cell}]"
        with stage.seeing(step.before) as past:
            namespace = stage.namespace
            namespace.update(made)
            seed = seed_of(step.manifest.step)
            surroundings.put(past.manifest.ambient, stage.fetch_ambient, seed)
            stage.prefetch(needs_of_source(step.source))
            read: list[str] = []
            try:
                with watching(stage.home, read.append):
                    exec(_compiled(step), namespace)
            except Exception as error:
                why = f"{cell} failed when it ran again, with {type(error).__name__}: {error}"
                raise self._plan.refusal(why[:500]) from error
            self._check_files(step, read)
            made = {name: namespace[name] for name in self.names if name in namespace}
            self._check_links(step, past, made)
        return made

    def _check_files(self, step: PastStep, read: list[str]) -> None:
        """Refuse if the cell read a file which is not the one it read then."""
        home = os.path.realpath(self._stage.home)
        opened = {os.path.relpath(path, home) for path in read}
        for number, _, paths in changed_files(self._stage.root):
            for path in paths:
                named = path in opened or os.path.basename(path) in step.source
                if number >= step.manifest.sequence and named:
                    why = f"cell [{step.cell}] reads {path}, which a later cell changed"
                    raise self._plan.refusal(why)

    def _check_links(self, step: PastStep, past: PastLoader, made: dict[str, Any]) -> None:
        """See that what the made values look into is what the session has under that name.

        A generator over ``data`` must see ``data``: if it is as the cell left it, the
        cell's own object takes the place of the saved one; if not, nothing is right.
        """
        reached = self._reach(list(made.values()))
        steps = self._plan.history
        later = steps[[name for name, _ in steps].index(step.after) + 1 :]
        live = self._live.manifest
        for name, value in list(self._stage.namespace.items()):
            if name in self.names or name not in live.names or past.is_live(name, value):
                continue
            shared = reached.keys() & self._reach([value]).keys()
            if not any(_counts(reached[number]) for number in shared):
                continue
            entry = live.names[name]
            cid = self._live.component_of[entry.key]
            if step.manifest.components.get(cid) == live.components[cid]:
                self._adopted.setdefault(cid, dict(self._stage.namespace))
            elif not rebound(name, later):
                why = f"it looks into '{name}', which a later cell changed"
                raise self._plan.refusal(why)

    def _reach(self, values: list[Any]) -> dict[int, Any]:
        """Every object that values lead to, by identity; classes and namespaces end the way."""
        found: dict[int, Any] = {}
        namespace = self._stage.namespace
        stops = {id(namespace), id(namespace["__builtins__"]), id(sys.modules)}
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if id(value) in found or id(value) in stops or isinstance(value, _ENDS):
                continue
            if len(found) > MAX_REACHED:
                raise self._plan.refusal("it is too large to see what it shares with variables")
            if issubclass(type(value), type):
                if value.__module__ == "__main__":
                    found[id(value)] = value
                continue
            found[id(value)] = value
            waiting += [type(value), *gc.get_referents(value)]
            if type(value).__module__ == "numpy":
                waiting.append(getattr(value, "base", None))  # no reference that `gc` knows
        return found

    def _values(self, cid: str, objects: dict[str, Any]) -> list[Any]:
        """Give objects of these names in the order of a component's keys."""
        live, values = self._live, []
        if cid in live.loaded and not any(
            name in self.names
            for key in live.manifest.components[cid].keys
            for name in live.names_of.get(key, ())
        ):
            names = [n for key in live.manifest.components[cid].keys for n in live.names_of[key]]
            raise self._plan.refusal(
                f"it looks into '{min(names)}', which this cell has used already"
            )
        for key in live.manifest.components[cid].keys:
            names = [name for name in live.names_of.get(key, ()) if name in objects]
            if not names:
                raise self._plan.refusal("it looks into an object which has no name of its own")
            values.append(objects[names[0]])
        return values


_ENDS = (types.ModuleType, types.CodeType, types.BuiltinFunctionType, str, bytes, int, float, bool)


def _counts(value: Any) -> bool:
    """Whether two variables sharing this object differ from two with equal ones."""
    return is_linkable(type(value)) or issubclass(type(value), type)


def _compiled(step: PastStep) -> types.CodeType:
    """Compile the cell as the shell does, under the name its source is found by."""
    interactive = sys.modules.get("IPython.core.getipython")
    shell = interactive.get_ipython() if interactive is not None else None
    if shell is None:
        return compile(step.source, f"<cell {step.cell}>", "exec", dont_inherit=True)
    name = shell.compile.get_code_name(step.source, step.source, step.cell)
    code: types.CodeType = shell.compile(step.source, name, "exec")
    return code


@contextmanager
def quiet() -> Iterator[None]:
    """Show nothing of what cells print and display: it was shown when they ran."""
    if "IPython.core.getipython" not in sys.modules:
        yield
        return
    from IPython.utils.capture import capture_output

    with capture_output():
        yield


def seed_of(step: str) -> bytes:
    """Give what seeded the random streams of a step which had none yet."""
    try:
        return bytes.fromhex(step)
    except ValueError:
        return step.encode()

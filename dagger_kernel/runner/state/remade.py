"""Which lost variables a cell makes again, and when: before it begins, or at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import RecomputeError, StateLostError
from .lost import LostObject, refused

if TYPE_CHECKING:
    from .manifest import Manifest
    from .stage import Stage


class Remade:
    """The lost variables of one cell.

    Parameters
    ----------
    stage : Stage
        Where cells run again.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._asked: set[str] = set()
        self._due: set[str] = set()
        self._used: set[str] = set()
        self._lost: set[str] = set()
        self._cells: dict[str, list[int]] = {}

    def begin(self, manifest: Manifest, used: set[str], *, every: bool) -> None:
        """Find out what is lost, and which of it this cell may make again.

        Parameters
        ----------
        manifest : Manifest
            The state before the cell.
        used : set of str
            Names which its source reads.
        every : bool
            Whether every lost variable is due, not only those the user asked for.
        """
        self._lost = {entry["name"] for entry in manifest.lost} & manifest.names.keys()
        self._asked = self._lost & set(manifest.remade)
        self._due = self._lost if every else set(self._asked)
        self._used = used

    def make_due(self) -> None:
        """Make again what the cell's source says it uses."""
        for name in sorted(self._due & self._used):
            if name in self._due:  # not made together with another one
                self._try(name)

    def fetch(self, name: str) -> Any:
        """Load a variable, or make it again.

        Raises
        ------
        KeyError
            No such variable is saved.
        StateLostError
            It could not be kept, nor be made again.
        """
        __tracebackhide__ = True
        if self._stage.repeating:
            return self._stage.loader.fetch(name)  # a repeated cell sees what it saw
        if name in self._due and name not in self._stage.namespace:
            self._try(name)
            if name in self._cells:
                return self._stage.namespace[name]
        return self._stage.loader.fetch(name)

    def ask(self, name: str) -> list[int]:
        """Make a variable again because the user says so; see `StateSession.recompute`."""
        if self._stage.repeating:
            return []  # the cell that asked runs again itself, with what it asked for at hand
        if name in self._cells:
            return self._cells[name]
        found = self._stage.namespace.get(name)
        if name not in self._lost and type(found) is not LostObject:
            try:
                self._stage.loader.fetch(name)
            except KeyError:
                if found is None:
                    raise RecomputeError(name, "there is no such variable") from None
            except StateLostError:
                pass  # its bytes are there, and could not be read
            else:
                return []
        self._make(name)
        self._asked |= {name}
        return self._cells[name]

    def _try(self, name: str) -> None:
        try:
            self._make(name)
        except RecomputeError as error:
            refused[name] = error.why
            self._due.discard(name)

    def _make(self, name: str) -> None:
        from .recompute import Recompute

        work = Recompute(self._stage, name)
        namespace = self._stage.namespace
        with self._stage.loader.lock:
            for other, value in work.run().items():
                if type(namespace.get(other)) is LostObject:
                    namespace[other] = value
        self._due -= work.names
        self._cells.update(dict.fromkeys(work.names, work.cells))

    @property
    def unseen(self) -> set[str]:
        """Variables of which the cell met a stand-in at most."""
        return {
            name
            for name in self._lost - self._cells.keys()
            if type(self._stage.namespace.get(name)) is LostObject
        }

    def still(self, manifest: Manifest) -> list[str]:
        """Variables which were asked for and are lost again: later cells make them again, too."""
        return sorted(self._asked & {entry["name"] for entry in manifest.lost})

"""Errors of the state layer.

::

    RuntimeError
    ├── StateLostError      a variable which could not live on was used
    └── RecomputeError      its cells may not or cannot run again
    ValueError
    └── ManifestError       the state directory is damaged or was tampered with
    Exception
    └── CannotPersistError  internal: this one object cannot be saved, and why
"""

from __future__ import annotations

import os
import sys
import types


class StateLostError(RuntimeError):
    """A variable which could not be carried to this cell was used.

    Parameters
    ----------
    name : str
        The variable (or the place inside it) which was used.
    type_name : str
        Type of the object which was lost.
    reason : str
        Why it could not be saved or restored, in plain words.
    cell : int
        Execution count of the cell which made it; 0 when unknown.
    """

    def __init__(self, name: str, type_name: str, reason: str, cell: int) -> None:
        self.name = name
        self.type_name = type_name
        self.reason = reason
        self.cell = cell
        again = f"run cell [{cell}] again" if cell > 0 else "run the cell that makes it again"
        if name.isidentifier():
            again += f", or %sandbox recompute {name}"
        why = reason.rstrip(".")
        super().__init__(f"'{name}' ({type_name}) was not kept: {why}. To get it back, {again}.")

    def _render_traceback_(self) -> list[str]:
        """Show IPython the user's frames only, not those which noticed the loss."""
        shell = sys.modules["IPython.core.getipython"].get_ipython()
        here = os.path.dirname(__file__)
        frames = []
        step = self.__traceback__
        while step is not None:
            if not step.tb_frame.f_code.co_filename.startswith(here):
                frames.append(step)
            step = step.tb_next
        shown: types.TracebackType | None = None
        for step in reversed(frames):
            shown = types.TracebackType(shown, step.tb_frame, step.tb_lasti, step.tb_lineno)
        formatter = shell.InteractiveTB
        lines: list[str] = formatter.structured_traceback(
            type(self), self, shown, tb_offset=formatter.tb_offset
        )
        return lines

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.name, self.type_name, self.reason, self.cell))


class RecomputeError(RuntimeError):
    """A lost variable cannot be made again; the message says why, and what to do."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(f"'{name}' cannot be made again: {why}.")

    def _render_traceback_(self) -> list[str]:
        """Show IPython one line: the user's code has no part in it."""
        return [f"RecomputeError: {self}"]

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.name, self.why))


class ManifestError(ValueError):
    """The state directory holds something which is not a valid manifest."""


class CannotPersistError(Exception):
    """One object cannot be saved; the message says why, in plain words."""


def reason_of(error: BaseException) -> str:
    """Say in plain words why an error makes an object lost; for another lost one, which."""
    if isinstance(error, StateLostError):
        return f"it needs '{error.name}' ({error.type_name}), which was not kept: {error.reason}"
    return f"{type(error).__name__}: {error}"

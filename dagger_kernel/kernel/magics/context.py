"""What a ``%sandbox`` command works on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ..holder import SessionHolder
from ..output import CellOutput


@dataclass(frozen=True)
class Context:
    """The kernel's session and the cell's output."""

    holder: SessionHolder
    output: CellOutput
    silent: bool = False

    def print(self, text: str) -> None:
        """Write a line of output."""
        if not self.silent:
            self.output.stream("stdout", text + "\n")


Command = Callable[[Context, list[str]], Awaitable[None]]

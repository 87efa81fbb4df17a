"""What a ``%sandbox`` command works on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from ..holder import SessionHolder
from ..output import CellOutput


class Ask(Protocol):
    """Asks the client that sent the cell."""

    async def __call__(self, prompt: str, *, password: bool) -> str:
        """Return what was typed."""


@dataclass(frozen=True)
class Context:
    """The kernel's session, the cell's output, and who answers questions (None: nobody)."""

    holder: SessionHolder
    output: CellOutput
    ask: Ask | None = None
    silent: bool = False

    def print(self, text: str) -> None:
        """Write a line of output."""
        if not self.silent:
            self.output.stream("stdout", text + "\n")


Command = Callable[[Context, list[str]], Awaitable[None]]

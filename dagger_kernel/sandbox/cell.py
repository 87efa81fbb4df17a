"""What a client asks to run, who listens, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from ..engines.base import Outcome, Progress
from ..errors import DaggerKernelError
from ..steps import Language, Limits, Result, Step


class InterruptedByUser(DaggerKernelError):  # noqa: N818 - it is Jupyter's KeyboardInterrupt, not a fault
    """The user interrupted before the cell began: in the queue, a base build or a replay."""

    def __init__(self) -> None:
        super().__init__(
            "Interrupted before the cell started.",
            kept="The cell was not run; what was replayed or built so far is kept.",
            remedy="",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell to run.

    Attributes
    ----------
    source, language
        The user's text, unchanged.
    silent
        Run without a step, output or effect.
    store_history
        Whether the counter advances.
    execution_count
        The cell's number.
    user_expressions
        Name to expression, evaluated after the cell.
    allow_stdin
        Whether `StepListener.input` may be asked.
    cell_id
        The notebook's id of the cell.
    session
        Number of the kernel start, for history.
    limits
        None: those of the settings.
    env
        Secrets for this run only; never logged.
    skill
        Name of the skill whose requirements this installs; empty: a cell of the user's.
    """

    source: str
    language: Language = Language.PYTHON
    silent: bool = False
    store_history: bool = True
    execution_count: int = 1
    user_expressions: dict[str, str] = field(default_factory=dict)
    allow_stdin: bool = False
    cell_id: str | None = None
    session: int = 0
    limits: Limits | None = None
    env: dict[str, str] = field(default_factory=dict)
    skill: str = ""


class StepListener(Protocol):
    """Who listens to a running cell. Called on the session's event loop, in order."""

    def event(self, head: dict[str, Any], body: bytes) -> None:
        """Take a frame of `dagger_kernel.runner.protocol`.

        Kinds: stream, display, result, clear, error, comm, progress (an empty text: over). Progress
        also tells of the queue, of building the base and of a replay.
        """

    async def input(self, prompt: str, password: bool) -> str:
        """Answer ``input()``; raise to refuse."""


class SilentListener:
    """Listens to nothing and refuses questions."""

    def event(self, head: dict[str, Any], body: bytes) -> None:
        """Ignore a frame."""

    async def input(self, prompt: str, password: bool) -> str:
        """Refuse."""
        raise EOFError("nobody can answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """A file that a cell made, changed or deleted; ``data`` only if it was exported."""

    path: str
    kind: str
    size: int = 0
    mime: str = "application/octet-stream"
    blob: str | None = None
    data: bytes | None = None
    skipped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """What became of a cell.

    Attributes
    ----------
    step
        None for a silent cell.
    drift
        One line for each step that a replay before this cell found changed.
    """

    step: Step | None
    result: Result
    outcome: Outcome
    drift: list[str]
    files: list[ExportedFile]


def tell_beside(listener: StepListener, text: str) -> None:
    """Tell the user something that is no part of the cell's output in the log."""
    head = {"type": "stream", "name": "stderr", "text": f"[dagger_kernel] {text}\n"}
    listener.event(head, b"")


def progress_to(listener: StepListener) -> Progress:
    """Return what shows a listener the state of long work."""

    def progress(text: str) -> None:
        listener.event({"type": "progress", "text": text}, b"")

    return progress

"""Listening to a repeated step: recorded answers in, frames out, for finding drift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Recorder:
    """A `StepHandler` that keeps the frames of a repeated step."""

    def __init__(self, answers: Sequence[str | None]) -> None:
        self._answers = list(answers)
        self.frames: list[tuple[dict[str, Any], bytes]] = []

    def event(self, head: dict[str, Any], body: bytes) -> None:
        """Keep a frame."""
        self.frames.append((head, body))

    async def input(self, prompt: str, password: bool) -> str:
        """Give the recorded answer; the runner has them too, so this is seldom asked."""
        if password or not self._answers:
            raise EOFError("there is no recorded answer: it was a password, or the cell asked less")
        answer = self._answers.pop(0)
        if answer is None:
            raise EOFError("the recorded answer was a password, which is never stored")
        return answer

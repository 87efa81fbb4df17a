"""Completion, inspection, is_complete and history: asked of the sandbox, with a way out.

A client waits for these with the user's hands on the keyboard. So each question has a time-out
and an answer for the case that no room can take it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from ..sandbox import SandboxSession
from ..steps import Language
from .completeness import completeness
from .holder import SessionHolder

logger = logging.getLogger(__name__)

COLD_SECONDS = 10.0
WARM_SECONDS = 3.0
DOUBTFUL_SECONDS = 0.5
"""How long completion and inspection may wait for a room: at first, after an answer, and after a
wait in vain (a long replay): cells of the user wait behind the question."""

POLL_SECONDS = 0.05

IS_COMPLETE_SECONDS = 0.3
"""Shorter: there is a good answer without the sandbox."""


class Answers:
    """Answers one kernel's questions about the tip's state. Used on the main loop only.

    Parameters
    ----------
    busy
        Whether a cell runs: then no room can answer.
    """

    def __init__(self, holder: SessionHolder, language: Language, busy: Callable[[], bool]) -> None:
        self._holder, self._language, self._busy = holder, language, busy
        self._patience = COLD_SECONDS

    async def complete(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return the content of a ``complete_reply``."""
        question = self._question(content)
        cursor = question["cursor_pos"]
        answer = await self._ask("complete", question, self._patience)
        fallback = {
            "status": "ok",
            "matches": [],
            "cursor_start": cursor,
            "cursor_end": cursor,
            "metadata": {},
        }
        return fallback if answer is None else fallback | answer

    async def inspect(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return the content of an ``inspect_reply``."""
        question = self._question(content)
        question["detail_level"] = 1 if content.get("detail_level") else 0
        answer = await self._ask("inspect", question, self._patience)
        fallback: dict[str, Any] = {"status": "ok", "found": False, "data": {}, "metadata": {}}
        return fallback if answer is None else fallback | answer

    async def is_complete(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return the content of an ``is_complete_reply``."""
        code = str(content.get("code", ""))
        answer = None
        if self._language is Language.PYTHON and self._holder.current is not None:
            question = {"code": code, "language": str(self._language)}
            answer = await self._ask("is_complete", question, IS_COMPLETE_SECONDS)
        if answer is None or answer.get("status") not in {"complete", "incomplete", "invalid"}:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(None, completeness, code, self._language)
        return {"status": "unknown"} | answer

    def _question(self, content: dict[str, Any]) -> dict[str, Any]:
        code = str(content.get("code", ""))
        cursor = content.get("cursor_pos")
        if not isinstance(cursor, int) or isinstance(cursor, bool):
            cursor = len(code)
        return {
            "code": code,
            "cursor_pos": min(max(cursor, 0), len(code)),
            "language": str(self._language),
        }

    async def _ask(
        self, kind: str, question: dict[str, Any], seconds: float
    ) -> dict[str, Any] | None:
        """Return the sandbox's answer, or None: busy, too slow, not possible."""
        if self._busy():
            return None
        try:
            async with asyncio.timeout(seconds):
                session: SandboxSession = await self._holder.get()
                while not session.status()["base"]:  # noqa: ASYNC110 - the session has no event
                    # Warming prepares it if it is built; a question never starts a build.
                    await asyncio.sleep(POLL_SECONDS)
                answer = await session.ask(kind, question)
        except Exception:
            logger.info("The question %r stays without an answer", kind, exc_info=True)
            if seconds == self._patience:
                self._patience = DOUBTFUL_SECONDS
            return None
        self._patience = WARM_SECONDS
        return None if not answer or answer.get("status") == "error" else answer

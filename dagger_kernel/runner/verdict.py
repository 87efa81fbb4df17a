"""How a step ended, put together from what the cell said and what the supervisor saw."""

from __future__ import annotations

import signal
from typing import Any

from .limits import NAMES, describe

LOST = "Variables are as before this cell; files are kept."

SAVING = {
    "saving": "took too long",
    "memory": "took more than twice the cell's memory limit",
    "processes": "started too many processes",
    "disk": "wrote more than twice the cell's disk limit",
}
"""Why saving was ended."""


class Verdict:
    """Collect facts; make the ``done`` frame and the error frames that the cell could not send.

    Attributes
    ----------
    limit
        Reason word of the limit that the supervisor found passed.
    cause
        Why the supervisor killed the cell process: a limit's word, ``interrupt`` (the second),
        ``deaf`` (the first was not noticed), ``saving`` (it took too long).
    """

    def __init__(self, limits: dict[str, float]) -> None:
        self.limits = limits
        self.limit = ""
        self.cause = ""
        self.trouble = ""
        self.interrupts = 0
        self.killed: list[str] = []
        self._executed: dict[str, Any] | None = None
        self._state: dict[str, Any] | None = None
        self._status = 0

    def executed(self, report: dict[str, Any]) -> None:
        """Take what the cell says of its run."""
        self._executed = report

    def saved(self, report: dict[str, Any]) -> None:
        """Take the state report."""
        self._state = dict(report.get("state") or {})

    def died(self, status: int) -> None:
        """Take the exit status of a cell process that ended early."""
        self._status = status

    @property
    def complete(self) -> bool:
        """Whether the cell process did all it had to."""
        return self._executed is not None and self._state is not None

    def error_frames(self) -> list[dict[str, Any]]:
        """Return the errors that the cell has not shown itself."""
        report = self._executed
        frames = []
        if self.trouble:
            frames.append(error("RunnerError", self.trouble))
        elif report is None:
            frames.append(self._death())
        elif self._state is None:
            how = SAVING.get(self.cause) or f"ended with {ending(self._status)}"
            frames.append(error("StateError", f"saving the variables {how}. {LOST}"))
        elif self._state.get("error") and not report.get("shown"):
            frames.append(error("StateError", f"{self._state['error']}. {LOST}"))
        elif self.limit and not report.get("reason"):
            # The cell's code swallowed it, or ended just then.
            frames.append(error(NAMES[self.limit][0], describe(self.limit, self.limits)))
        return frames

    def _death(self) -> dict[str, Any]:
        if self.limit:
            return error(NAMES[self.limit][0], f"{describe(self.limit, self.limits)}. {LOST}")
        if self.cause == "deaf":
            return error(
                "KeyboardInterrupt",
                f"the cell did not notice the interrupt (it was inside C code) and was ended. {LOST}",
            )
        if self.cause == "interrupt":
            return error("KeyboardInterrupt", f"the cell was ended by the second interrupt. {LOST}")
        if self._status == -signal.SIGXCPU:
            return error(NAMES["cpu"][0], f"{describe('cpu', self.limits)}. {LOST}")
        return error(
            "CellProcessEnded", f"the cell's process ended with {ending(self._status)}. {LOST}"
        )

    @property
    def status(self) -> str:
        """``ok``, ``error``, ``interrupted`` or ``limit``."""
        report = self._executed
        if self.trouble:
            return "error"
        if report is None:
            if self.limit or self._status == -signal.SIGXCPU:
                return "limit"
            return "interrupted" if self.cause in ("deaf", "interrupt") else "error"
        if self.limit:
            return "limit"
        if self._state is None or self._state.get("error"):
            return "error" if report["status"] == "ok" else str(report["status"])
        return str(report["status"])

    def done(self, usage: dict[str, Any], *, truncated: bool) -> dict[str, Any]:
        """Return the ``done`` frame."""
        report = self._executed or {}
        reason = self.limit or str(report.get("reason") or "")
        if not reason and self._status == -signal.SIGXCPU:
            reason = "cpu"
        state = self._state
        if state is None:
            state = {"saved": [], "unchanged": 0, "lost": [], "kept": "before"}
        code = self._status if self._executed is None else int(report.get("exit_code", 0))
        if code == 0 and self.status != "ok" and self._executed is None:
            code = 1
        return {
            "type": "done",
            "status": self.status,
            "reason": reason,
            "exit_code": code,
            "usage": usage,
            "state": state,
            "user_expressions": report.get("user_expressions") or {},
            "payloads": report.get("payloads") or [],
            "truncated": truncated,
            "killed": self.killed,
            "answers": report.get("answers") or [],
        }


def ending(status: int) -> str:
    """Say how a process ended."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def error(name: str, text: str) -> dict[str, Any]:
    """Return an error frame in ipykernel's colours."""
    return {
        "type": "error",
        "ename": name,
        "evalue": text,
        "traceback": [f"\x1b[31m{name}\x1b[39m: {text}"],
    }

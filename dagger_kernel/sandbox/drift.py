"""Drift: a replayed step whose result differs from the recorded one."""

from __future__ import annotations

from typing import Any

from ..engines.base import ChainStep, Outcome
from ..steps import FileChange, Result, digest_bytes
from .collector import Outputs, file_change, repeatable_digest
from .masking import MaskedFrames
from .secrets import Secrets, absent


class DriftFinder:
    """Compares repeated steps with their records; collects one line for each that differs."""

    def __init__(self, results: dict[str, Result], secrets: Secrets) -> None:
        self._results = results  # by key
        self._secrets = secrets
        self.lines: list[str] = []

    def replayed(
        self, step: ChainStep, outcome: Outcome, frames: list[tuple[dict[str, Any], bytes]]
    ) -> None:
        """Take a repeated step; see `dagger_kernel.engines.base.Replayed`."""
        recorded = self._results.get(step.key)
        if recorded is None:
            return
        number = recorded.execution_count
        self._tell_secrets(step, number)
        outputs, files = Outputs(), list[FileChange]()
        masked = MaskedFrames(self._secrets.mask)
        heard = [item for frame in frames for item in masked.take(*frame)]
        for head, body in [*heard, *masked.rest()]:
            outputs.take(head)
            if head["type"] == "file":
                stored = head.get("kind") != "deleted" and not head.get("skipped")
                files.append(file_change(head, digest_bytes(body) if stored else None, ""))
        if recorded.files and any(file.kind == "output" for file in recorded.files):
            files += [file for file in recorded.files if file.kind == "output"]
        if repeatable_digest(outcome, outputs.list, files) == recorded.digest:
            return
        parts = []
        if outcome.status != recorded.status:
            parts.append(f"status {recorded.status} became {outcome.status}")
        before = {file.path: file.blob for file in recorded.files}
        changed = sorted(f.path for f in files if before.get(f.path) != f.blob)
        if changed:
            parts.append("files " + ", ".join(changed[:5]))
        what = "; ".join(parts) or "output or saved variables"
        self.lines.append(
            f"Replaying step {step.seq} (cell [{number}]) gave another result than the log: {what}."
        )

    def _tell_secrets(self, step: ChainStep, number: int | None) -> None:
        names = step.request.get("secrets", ())
        if not names:
            return
        gone = absent(step.request)
        how = (
            f"it was replayed without {', '.join(gone)}, which the log does not hold"
            if gone
            else "its replay was given them again"
        )
        self.lines.append(
            f"Step {step.seq} (cell [{number}]) had secrets, {', '.join(names)}: {how}."
        )

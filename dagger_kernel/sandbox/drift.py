"""Drift: a replayed step whose result differs from the recorded one."""

from __future__ import annotations

from typing import Any

from ..engines.base import ChainStep, Outcome
from ..steps import FileChange, Result, digest_bytes
from .collector import Outputs, file_change, repeatable_digest


class DriftFinder:
    """Compares repeated steps with their records; collects one line for each that differs."""

    def __init__(self, results: dict[str, Result]) -> None:
        self._results = results  # by key
        self.lines: list[str] = []

    def replayed(
        self, step: ChainStep, outcome: Outcome, frames: list[tuple[dict[str, Any], bytes]]
    ) -> None:
        """Take a repeated step; see `dagger_kernel.engines.base.Replayed`."""
        recorded = self._results.get(step.key)
        if recorded is None:
            return
        outputs, files = Outputs(), list[FileChange]()
        for head, body in frames:
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
        number = recorded.execution_count
        self.lines.append(
            f"Replaying step {step.seq} (cell [{number}]) gave another result than the log: {what}."
        )

"""One step while it runs: frames to the listener, the record for the log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..engines.base import Outcome
from ..log import BlobStore
from ..steps import FileChange, Limits, Result, Status, Step
from .cell import ExportedFile, StepListener
from .collector import FULL_OUTPUT, Outputs, file_change, repeatable_digest
from .masking import Mask, MaskedFrames
from .mime import sniff

LISTENED = frozenset(("stream", "display", "result", "clear", "error", "comm", "progress"))


class RunningStep:
    """A `StepHandler` between a room and a listener. What it lets through is masked."""

    def __init__(self, listener: StepListener, execution_count: int | None, mask: Mask) -> None:
        self._listener = listener
        self._masked = MaskedFrames(mask)
        self._count = execution_count
        self.outputs = Outputs()
        self._files: list[tuple[dict[str, Any], bytes]] = []

    def event(self, head: dict[str, Any], body: bytes) -> None:
        """Keep what the log wants, pass on what the listener wants."""
        for frame in self._masked.take(head, body):
            self._take(*frame)

    def _take(self, head: dict[str, Any], body: bytes) -> None:
        kind = head["type"]
        if kind == "file":
            self._files.append((head, body))
        elif kind == "overflow":
            name = f"output-{self._count}.txt" if self._count else FULL_OUTPUT
            self._files.append(({"path": name, "kind": "output", "size": len(body)}, body))
        if kind in LISTENED:
            self.outputs.take(head)
            self._listener.event(head, body)

    async def input(self, prompt: str, password: bool) -> str:
        """Ask the listener."""
        self._let_go()
        prompt = self._masked.mask.text(prompt)
        return await self._listener.input(prompt, password)

    def outcome(self, outcome: Outcome) -> Outcome:
        """Take the end of the step; return its outcome, masked."""
        self._let_go()
        mask = self._masked.mask
        if not mask:
            return outcome
        told = {
            name: mask.json(getattr(outcome, name))
            for name in ("usage", "state", "user_expressions", "payloads", "killed")
        }
        # Like a password: a repeated step must not be answered with the mask.
        answers = [None if a is not None and mask.text(a) != a else a for a in outcome.answers]
        return replace(outcome, answers=answers, **told)

    def _let_go(self) -> None:
        for frame in self._masked.rest():
            self._take(*frame)

    def tell(self, text: str) -> None:
        """Tell the user something beside the cell's own output."""
        self.event({"type": "stream", "name": "stderr", "text": f"[dagger_kernel] {text}\n"}, b"")

    def tell_capped(self, asked: Limits | None, given: Limits) -> None:
        """Tell which limits the administrator's maximum made smaller than what was asked for."""
        default = Limits()
        for name, value in given.to_json().items() if asked else ():
            wanted = getattr(asked, name)
            if value < wanted != getattr(default, name):
                self.tell(f"{name} is {value} and not {wanted}: the administrator's maximum.")

    def tell_refused(self, hosts: dict[str, str]) -> None:
        """Tell which hosts the network policy refused: programs seldom show the proxy's words."""
        for host, what in hosts.items():
            if what.startswith("refused: "):
                self.tell(f"{host} was not reached: {what.removeprefix('refused: ')}.")

    def store_files(self, blobs: BlobStore) -> tuple[list[FileChange], list[ExportedFile]]:
        """Store the exported files' bytes; return their records and the files themselves.

        Called in the log's thread.
        """
        changes, exported = [], []
        for head, body in self._files:
            deleted = head.get("kind") == "deleted" or bool(head.get("skipped"))
            path = str(head.get("path", ""))
            blob = None if deleted else blobs.put(body)
            mime = "application/octet-stream" if deleted else sniff(path, body)
            change = file_change(head, blob, mime)
            changes.append(change)
            exported.append(
                ExportedFile(
                    path=change.path,
                    kind=change.kind,
                    size=change.size,
                    mime=mime,
                    blob=blob,
                    data=None if deleted else body,
                    skipped=change.skipped,
                )
            )
        return changes, exported

    def result(
        self, step: Step, outcome: Outcome, files: list[FileChange], layer: str | None = None
    ) -> Result:
        """Return the record of the finished step."""
        return Result(
            step_id=step.id,
            status=Status(outcome.status),
            reason=outcome.reason,
            execution_count=self._count,
            exit_code=outcome.exit_code,
            outputs=self.outputs.list,
            usage=outcome.usage,
            state_report=outcome.state,
            files=files,
            answers=outcome.answers,
            layer=layer,
            truncated=outcome.truncated,
            digest=repeatable_digest(outcome, self.outputs.list, files),
        )

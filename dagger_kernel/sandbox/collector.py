"""Collect a step's frames as the log wants them: nbformat outputs, files, the digest for drift."""

from __future__ import annotations

import re
from typing import Any

from ..engines.base import Outcome
from ..steps import FileChange, digest_json

FULL_OUTPUT = "output.txt"
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_FIRST_SEEN = ("stream", "display", "result", "error")


class Outputs:
    """Folds frames into the list of outputs that a notebook would hold after the cell."""

    def __init__(self) -> None:
        self.list: list[dict[str, Any]] = []
        self._clear_next = False

    def take(self, head: dict[str, Any]) -> None:
        """Fold in one frame; other kinds than output are ignored."""
        kind = head["type"]
        if kind == "clear":
            if head.get("wait"):
                self._clear_next = True
            else:
                self.list.clear()
            return
        if kind not in _FIRST_SEEN:
            return
        if kind == "display" and head.get("update"):
            self._update(head)
            return
        if self._clear_next:
            self._clear_next = False
            self.list.clear()
        if kind == "stream":
            self._stream(str(head.get("name", "stdout")), str(head.get("text", "")))
        elif kind == "error":
            names = ("ename", "evalue", "traceback")
            self.list.append({"output_type": "error", **{n: head.get(n, "") for n in names}})
        else:
            self._bundle(kind, head)

    def _stream(self, name: str, text: str) -> None:
        last = self.list[-1] if self.list else None
        if last and last["output_type"] == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.list.append({"output_type": "stream", "name": name, "text": text})

    def _bundle(self, kind: str, head: dict[str, Any]) -> None:
        output: dict[str, Any] = {
            "output_type": "execute_result" if kind == "result" else "display_data",
            "data": head.get("data", {}),
            "metadata": head.get("metadata", {}),
        }
        if kind == "result":
            output["execution_count"] = head.get("execution_count")
        if display_id := (head.get("transient") or {}).get("display_id"):
            output["transient"] = {"display_id": display_id}
        self.list.append(output)

    def _update(self, head: dict[str, Any]) -> None:
        display_id = (head.get("transient") or {}).get("display_id")
        for output in self.list:
            if (output.get("transient") or {}).get("display_id") == display_id:
                output["data"] = head.get("data", {})
                output["metadata"] = head.get("metadata", {})


def repeatable_digest(
    outcome: Outcome, outputs: list[dict[str, Any]], files: list[FileChange]
) -> str:
    """Return the digest of what a replay must repeat.

    Status, outputs (memory addresses left out: they differ in every process), exported files and the
    names of the variables that were saved or lost.
    """
    plain = [
        {k: v for k, v in output.items() if k not in ("transient", "metadata")}
        for output in outputs
    ]
    names = [outcome.state.get(kind, []) for kind in ("saved", "lost")]
    content = {
        "status": outcome.status,
        "outputs": plain,
        "files": sorted([file.path, file.kind, file.blob or ""] for file in files),
        "names": [[n["name"] if isinstance(n, dict) else n for n in group] for group in names],
    }
    return digest_json(_without_addresses(content))


def _without_addresses(value: Any) -> Any:
    if isinstance(value, str):
        return _ADDRESS.sub("0x", value)
    if isinstance(value, dict):
        return {key: _without_addresses(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_addresses(item) for item in value]
    return value


def file_change(head: dict[str, Any], blob: str | None, mime: str) -> FileChange:
    """Return the record of a ``file`` frame; every field is checked, the frame is not trusted."""
    size, mode, skipped = head.get("size"), head.get("mode"), head.get("skipped")
    kind = head.get("kind")
    return FileChange(
        path=str(head.get("path", ""))[:4096],
        kind=kind if kind in ("new", "changed", "deleted", "output") else "changed",
        size=size if isinstance(size, int) else 0,
        mode=mode & 0o7777 if isinstance(mode, int) else 0o644,
        blob=blob,
        mime=mime,
        skipped=str(skipped)[:500] if skipped else None,
    )

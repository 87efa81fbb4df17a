"""The JSON that the REST API shows of steps, results and files."""

from __future__ import annotations

import mimetypes
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..steps import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..log import Artifact, SandboxRow
    from ..steps import FileChange, Result, Step

TITLE_LENGTH = 120


def sandbox_view(sandbox: SandboxRow) -> dict[str, Any]:
    """Show a sandbox."""
    return {
        "id": sandbox.id,
        "notebook": sandbox.notebook,
        "name": os.path.basename(sandbox.notebook),
        "created": sandbox.created.isoformat(),
        "last_activity": sandbox.last_activity.isoformat(),
        "parent_step": sandbox.parent_step,
        "steps": sandbox.steps,
        "state": sandbox.state,
    }


def artifact_view(artifact: Artifact) -> dict[str, Any]:
    """Show a file with the step that made it or put it in."""
    return {
        "path": artifact.path,
        "size": artifact.size,
        "mode": artifact.mode,
        "blob": artifact.blob,
        "mime": artifact.mime,
        "step": artifact.seq,
        "role": artifact.role,
        "created": artifact.created.isoformat(),
    }


def file_view(change: FileChange) -> dict[str, Any]:
    """Show one file that a step made, changed or deleted."""
    return asdict(change)


def upload_view(item: Mapping[str, Any]) -> dict[str, Any]:
    """Show one file of an upload step in the shape of `file_view`."""
    return {
        "path": item["path"],
        "kind": "new",
        "size": item.get("size", 0),
        "mode": item.get("mode", 0o644),
        "blob": item.get("blob"),
        "mime": item.get("mime") or guess_mime(item["path"]),
        "skipped": item.get("skipped"),
    }


def files_of(step: Step, result: Result | None) -> list[dict[str, Any]]:
    """Return what a step did to the files, uploads included."""
    if step.kind == Kind.UPLOAD:
        return [upload_view(item) for item in step.payload.get("files", [])]
    return [file_view(change) for change in result.files] if result else []


def step_view(step: Step, result: Result | None) -> dict[str, Any]:
    """Show a step in a list: everything but source, outputs and the state report's details."""
    return {
        "id": step.id,
        "sandbox": step.sandbox_id,
        "seq": step.seq,
        "parent": step.parent_id,
        "kind": str(step.kind),
        "language": str(step.language),
        "title": _title(step),
        "cell_id": step.payload.get("cell_id"),
        "to": step.payload.get("to"),
        "created": step.created.isoformat(),
        "finished": result.finished.isoformat() if result else None,
        "status": str(result.status) if result else _status_without_result(step),
        "reason": result.reason if result else "",
        "execution_count": result.execution_count if result else None,
        "usage": dict(result.usage) if result else {},
        "truncated": bool(result and result.truncated),
        "files": files_of(step, result),
        "state": dict(result.state_report) if result else {},
    }


def step_detail(step: Step, result: Result | None) -> dict[str, Any]:
    """Show everything about one step. What was typed at ``input()`` stays in the log."""
    return step_view(step, result) | {
        "source": step.source,
        "outputs": list(result.outputs) if result else [],
        "exit_code": result.exit_code if result else None,
        "limits": step.limits.to_json(),
        "engine": step.engine,
        "base": step.base_digest,
        "key": step.key,
        "nonce": step.nonce,
    }


def _status_without_result(step: Step) -> str:
    # Only a cell runs; the other kinds are done when they are logged.
    return "pending" if step.kind == Kind.CELL else "ok"


def _title(step: Step) -> str:
    """Return the line that names a step in a list."""
    if step.kind == Kind.UPLOAD:
        return ", ".join(str(item["path"]) for item in step.payload.get("files", []))[:TITLE_LENGTH]
    if step.kind == Kind.MOUNT:
        return str(step.payload.get("name", ""))
    for line in step.source.splitlines():
        if line.strip():
            return line.strip()[:TITLE_LENGTH]
    return ""


def guess_mime(path: str) -> str:
    """Guess a media type by name, where no content was looked at."""
    return mimetypes.guess_type(path.replace("\\", "/"), strict=False)[0] or (
        "application/octet-stream"
    )


def size_text(size: int) -> str:
    """Return a size for people: ``75 bytes``, ``16 MiB``."""
    value, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"

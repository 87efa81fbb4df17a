"""The rows of a step's files and blobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, insert
from sqlalchemy.dialects import postgresql, sqlite

from ..steps import Kind
from . import tables as t
from .rows import dump

_INSERT_ARTIFACTS = insert(t.artifact)
_INSERT_BLOBS: dict[str, Any] = {
    "sqlite": sqlite.insert(t.blob).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(t.blob).on_conflict_do_nothing(),
}


def exports(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the artifact rows of a result's ``files``: those that have a blob."""
    return [
        {
            "role": "export",
            "number": number,
            "path": dump(item["path"]),
            "blob": item["blob"],
            "mime": dump(item["mime"]),
            "mode": item["mode"],
        }
        for number, item in enumerate(files)
        if item["blob"] is not None
    ]


def uploads(kind: str, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the artifact rows of a step's payload: an upload's files, a mount's archive."""
    if kind == Kind.MOUNT and "digest" in payload:
        return [
            {
                "role": "mount",
                "number": 0,
                "path": dump(f"/skills/{payload['name']}"),
                "blob": payload["digest"],
                "mime": dump("application/x-tar"),
                "mode": 0o644,
            }
        ]
    if kind != Kind.UPLOAD:
        return []
    return [
        {
            "role": "upload",
            "number": number,
            "path": dump(item["path"]),
            "blob": item["blob"],
            "mime": dump(item.get("mime", "application/octet-stream")),
            "mode": item.get("mode", 0o644),
        }
        for number, item in enumerate(payload.get("files", ()))
    ]


def insert_artifacts(
    connection: Connection,
    rows: list[dict[str, Any]],
    others: Iterable[tuple[str, int]] = (),
    *,
    sandbox_id: str,
    step_id: str,
    location: str,
) -> None:
    """Insert artifact rows, and the rows of their and other blobs (digest, size)."""
    sizes = {item["blob"]: item["size"] for item in rows} | dict(others)
    if not sizes:
        return
    blobs = [
        {"digest": digest, "size": size, "location": location}
        for digest, size in sorted(sizes.items())  # one order: no deadlock between writers
    ]
    connection.execute(_INSERT_BLOBS[connection.dialect.name], blobs)
    if rows:
        owner = {"sandbox_id": sandbox_id, "step_id": step_id}
        connection.execute(_INSERT_ARTIFACTS, [item | owner for item in rows])

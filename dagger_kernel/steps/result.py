"""A result: what a step did, written once, after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a step ended.

    ``ok`` and ``error`` are repeated on replay; the others cannot be repeated and
    have their layer difference stored instead (`Result.layer`).
    """

    OK = "ok"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    LIMIT = "limit"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file below ``/home/sandbox`` that a step made, changed or deleted.

    Attributes
    ----------
    path
        Relative to ``/home/sandbox``; bytes that are no UTF-8 are surrogate-escaped.
    kind
        ``new``, ``changed`` or ``deleted``.
    size
        Bytes.
    mode
        Permission bits.
    blob
        Digest of the content, if it was exported; else None.
    mime
        Media type, by content.
    skipped
        Why it was not exported, one short clause; None if it was.
    """

    path: str
    kind: str
    size: int = 0
    mode: int = 0o644
    blob: str | None = None
    mime: str = "application/octet-stream"
    skipped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a step did.

    Attributes
    ----------
    step_id
        The step.
    status
        How it ended.
    reason
        For ``limit``: which one (``cpu``, ``memory``, ``wall``, ``output``, ``processes``, ``disk``,
        ``killed``). Else empty.
    execution_count
        The cell's number, or None.
    exit_code
        Of the cell process (negative: the signal that ended it).
    outputs
        nbformat 4.5 outputs, in order.
    usage
        ``cpu_seconds``, ``wall_seconds``, ``max_rss_bytes``, ``queue_seconds`` ...
    state_report
        What was saved or lost (`dagger_kernel.runner.state`).
    files
        Files changed.
    answers
        What the user typed at ``input()``; None where it was a password.
    layer
        Digest of the stored layer difference, for steps that cannot be repeated.
    truncated
        Whether output was cut.
    digest
        Of what a replay must repeat: status, outputs, files, variables' names.
    finished
        UTC.
    """

    step_id: str
    status: Status
    reason: str = ""
    execution_count: int | None = None
    exit_code: int = 0
    outputs: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    state_report: dict[str, Any] = field(default_factory=dict)
    files: list[FileChange] = field(default_factory=list)
    answers: list[str | None] = field(default_factory=list)
    layer: str | None = None
    truncated: bool = False
    digest: str = ""
    finished: datetime = field(default_factory=lambda: datetime.now(UTC))

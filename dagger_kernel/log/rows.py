"""Between the shared vocabulary (`Step`, `Result`) and the rows of the tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import RowMapping

from ..steps import (
    FileChange,
    Kind,
    Language,
    Limits,
    Result,
    Status,
    Step,
    canonical_json,
    digest_json,
)

Row = Mapping[str, Any] | RowMapping
"""A row of a table, by column name."""

GENESIS = "0" * 64
"""What a sandbox's own row names as the hash before it."""

NOT_HASHED = frozenset({"hash", "outputs"})
"""A row's hash cannot cover itself; outputs are covered by ``outputs_digest``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRow:
    """A sandbox as the log lists it.

    Attributes
    ----------
    id
        UUID, hexadecimal.
    owner, notebook
        Whose it is, and of which notebook (empty: none).
    created, last_activity
        UTC.
    parent_step
        The step it was forked from; None: it starts at the base.
    steps
        Number of steps.
    state
        ``open``; ``ended`` by the user's restart; ``purged``.
    """

    id: str
    owner: str
    notebook: str
    created: datetime
    parent_step: str | None
    steps: int
    last_activity: datetime
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a step exported (``role`` export) or put in (``upload``), with its provenance.

    ``path`` is relative to ``/home/sandbox``, ``blob`` the digest of the content, ``size`` in bytes;
    ``seq`` and ``created`` are those of the step.
    """

    sandbox_id: str
    step_id: str
    seq: int
    role: str
    path: str
    blob: str
    size: int
    mime: str
    mode: int
    created: datetime


def dump(value: Any) -> str:
    """Return JSON text; what has no JSON form (NaN, odd keys) is made the nearest thing that has.

    A result must never be lost because an output holds NaN.
    """
    try:
        return canonical_json(value).decode("ascii")
    except (TypeError, ValueError):
        return canonical_json(_plain(value)).decode("ascii")


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return str(value)


def now() -> str:
    """Return the present time as the tables hold it."""
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    """Return a time as the tables hold it: UTC, microseconds always written, so that text sorts."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def row_hash(table: str, values: Row) -> str:
    """Return the hash of a row, which covers the hash before it (``previous``).

    Null columns are left out, so that a later version may add columns.
    """
    covered = {
        name: value
        for name, value in values.items()
        if value is not None and name not in NOT_HASHED
    }
    return digest_json([table, covered])


def step_values(step: Step) -> dict[str, Any]:
    """Return the columns of a step, without its place in the chain."""
    payload = step.payload
    in_history = step.kind is Kind.CELL and payload.get("store_history", True)
    return {
        "id": step.id,
        "sandbox_id": step.sandbox_id,
        "seq": step.seq,
        "parent_id": step.parent_id,
        "origin_id": payload.get("to", step.parent_id)
        if step.kind is Kind.REWIND
        else step.parent_id,
        "kind": str(step.kind),
        "language": str(step.language),
        "source": dump(step.source),
        "payload": dump(payload),
        "limits": dump(step.limits.to_json()),
        "nonce": step.nonce,
        "base_digest": step.base_digest,
        "runner_digest": step.runner_digest,
        "engine": step.engine,
        "key": step.key,
        "created": stamp(step.created),
        "session": _number(payload.get("session")) if in_history else None,
        "line": _number(payload.get("execution_count")) if in_history else None,
    }


def _number(value: Any) -> int | None:
    """Return what an integer column takes; the payload itself keeps whatever was given."""
    return value if type(value) is int and abs(value) < 1 << 31 else None


def read_step(row: Row) -> Step:
    """Return the step of a row."""
    return Step(
        id=row["id"],
        sandbox_id=row["sandbox_id"],
        seq=row["seq"],
        parent_id=row["parent_id"],
        kind=Kind(row["kind"]),
        language=Language(row["language"]),
        source=json.loads(row["source"]),
        payload=json.loads(row["payload"]),
        limits=_limits(row["limits"]),
        nonce=row["nonce"],
        base_digest=row["base_digest"],
        runner_digest=row["runner_digest"],
        engine=row["engine"],
        key=row["key"],
        created=datetime.fromisoformat(row["created"]),
    )


@lru_cache(64)
def _limits(text: str) -> Limits:
    """Return limits; most steps of a log have the same ones, and they cannot be changed."""
    return Limits.from_json(json.loads(text))


def result_values(result: Result) -> dict[str, Any]:
    """Return the columns of a result, without outputs and its place in the chain."""
    return {
        "step_id": result.step_id,
        "status": str(result.status),
        "reason": dump(result.reason),
        "execution_count": result.execution_count,
        "exit_code": result.exit_code,
        "usage": dump(result.usage),
        "state_report": dump(result.state_report),
        "files": dump([asdict(item) for item in result.files]),
        "answers": dump(result.answers),
        "layer": result.layer,
        "truncated": result.truncated,
        "digest": result.digest,
        "finished": stamp(result.finished),
    }


def read_result(row: Row, outputs: list[dict[str, Any]]) -> Result:
    """Return the result of a row and its outputs."""
    return Result(
        step_id=row["step_id"],
        status=Status(row["status"]),
        reason=json.loads(row["reason"]),
        execution_count=row["execution_count"],
        exit_code=row["exit_code"],
        outputs=outputs,
        usage=json.loads(row["usage"]),
        state_report=json.loads(row["state_report"]),
        files=[FileChange(**item) for item in json.loads(row["files"])],
        answers=json.loads(row["answers"]),
        layer=row["layer"],
        truncated=row["truncated"],
        digest=row["digest"],
        finished=datetime.fromisoformat(row["finished"]),
    )

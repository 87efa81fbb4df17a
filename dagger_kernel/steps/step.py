"""A step: one logged event, fixed before it happens and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from .limits import Limits


class Kind(StrEnum):
    """What a step is."""

    CELL = "cell"
    UPLOAD = "upload"
    MOUNT = "mount"
    REWIND = "rewind"


class Language(StrEnum):
    """The language of a cell."""

    PYTHON = "python"
    BASH = "bash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One logged event.

    Attributes
    ----------
    id
        Identity of the row (UUID, hexadecimal).
    sandbox_id
        The sandbox it belongs to.
    seq
        Position in the sandbox's log, from 1, without gaps.
    parent_id
        The step whose state this one starts from; None: the base.
    kind, language, source
        What is done; the source is the user's text, unchanged.
    payload
        What else can change the outcome. A cell: ``execution_count``, ``store_history``,
        ``cell_id``, ``allow_stdin``. An upload: ``files`` (a list of ``path``, ``blob``, ``size``,
        ``mode``). A mount: ``name``, ``digest``. A rewind: ``to`` (a step id, or None for the base).
    limits
        In force for this step.
    nonce
        Identity of the execution.
    base_digest, runner_digest, engine
        Where it was first run.
    key
        Address of the state after it. A rewind's key is its target's.
    created
        UTC.
    """

    id: str
    sandbox_id: str
    seq: int
    parent_id: str | None
    kind: Kind
    nonce: str
    base_digest: str
    runner_digest: str
    engine: str
    key: str
    language: Language = Language.PYTHON
    source: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able mapping with every field."""
        return {
            "id": self.id,
            "sandbox_id": self.sandbox_id,
            "seq": self.seq,
            "parent_id": self.parent_id,
            "kind": str(self.kind),
            "language": str(self.language),
            "source": self.source,
            "payload": self.payload,
            "limits": self.limits.to_json(),
            "nonce": self.nonce,
            "base_digest": self.base_digest,
            "runner_digest": self.runner_digest,
            "engine": self.engine,
            "key": self.key,
            "created": self.created.isoformat(),
        }

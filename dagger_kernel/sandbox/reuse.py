"""``reuse = "shared"``: an equal cell on an equal state is not run again; its recorded result is taken.

Equal means: the same key, which is made of the parent's key and of everything that can change the
outcome. A result that depended on a person's answers or on a secret is never shared.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from ..engines.base import Outcome
from ..log import LogStore
from ..settings import Settings
from ..steps import Result, Step
from .cell import Cell, ExportedFile, StepListener
from .chains import repeats

KINDS = {"display_data": "display", "execute_result": "result"}


def content_of(cell: Cell, limits: dict[str, Any], settings: Settings) -> list[Any]:
    """Return everything of a cell that can change its outcome."""
    content = [str(cell.language), cell.source, cell.execution_count, cell.store_history, limits]
    return [*content, "recompute"] if settings.recompute else content


def may_share(cell: Cell) -> bool:
    """Whether a cell's result may come from, and go to, other sandboxes."""
    return not (cell.silent or cell.env or cell.allow_stdin or cell.user_expressions)


def take_recorded(log: LogStore, step: Step) -> tuple[Step, Result] | None:
    """Append a step with the recorded result of its key, if there is one that repeats.

    Called in the log's thread, with the sandbox's lock held.
    """
    found = log.find(step.key)
    origin, recorded = found if found is not None else (step, None)
    if recorded is None:
        return None
    repeated = repeats(recorded.status, recorded.usage) and not recorded.answers
    if not repeated or origin.payload.get("secrets"):
        return None
    step = replace(step, id=uuid.uuid4().hex, payload={**step.payload, "reused": origin.id})
    step = log.append(step)
    usage = {"wall_seconds": 0.0, "reused": True}
    return step, log.finish(replace(recorded, step_id=step.id, usage=usage))


def tell(result: Result, listener: StepListener) -> None:
    """Send a recorded result's outputs to a listener, as if the cell ran."""
    for output in result.outputs:
        kind = output["output_type"]
        head = {**output, "type": KINDS.get(kind, kind)}
        if "transient" not in head and kind == "display_data":
            head["transient"] = {}
        listener.event(head, b"")


def outcome_of(result: Result) -> Outcome:
    """Return the outcome that a recorded result stands for."""
    return Outcome(
        status=str(result.status),
        reason=result.reason,
        exit_code=result.exit_code,
        usage=result.usage,
        state=result.state_report,
        truncated=result.truncated,
    )


def files_of(log: LogStore, result: Result) -> list[ExportedFile]:
    """Return the files of a recorded result with their bytes. Called in the log's thread."""
    return [
        ExportedFile(
            path=file.path,
            kind=file.kind,
            size=file.size,
            mime=file.mime,
            blob=file.blob,
            data=log.blobs.read(file.blob) if file.blob else None,
            skipped=file.skipped,
        )
        for file in result.files
    ]

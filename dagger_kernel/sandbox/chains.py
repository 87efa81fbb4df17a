"""From logged steps to the chain an engine replays."""

from __future__ import annotations

from typing import Any

from ..engines.base import ChainStep, PutFile, has_saved
from ..steps import Kind, Result, Step, root_key

REPEATED = ("ok", "error")


def repeats(status: str, usage: dict[str, Any]) -> bool:
    """Whether running a step again does the same: not after a limit, nor after an interrupt.

    A cell may catch its interrupt and end well; when it came cannot be repeated either.
    """
    return status in REPEATED and not usage.get("interrupts")


def cell_request(step: Step) -> dict[str, Any]:
    """Return the ``step`` frame of a logged cell: all that can change its outcome, and nothing else."""
    return {
        "type": "step",
        "nonce": step.nonce,
        "language": str(step.language),
        "source": step.source,
        "silent": False,
        "store_history": step.payload.get("store_history", True),
        "execution_count": step.payload.get("execution_count", 0),
        "user_expressions": {},
        "recompute": step.payload.get("recompute", False),
        "allow_stdin": step.payload.get("allow_stdin", False),
        "limits": step.limits.to_json(),
        "answers": None,
        "env": {},
        "replay": False,
        "exports": {"exclude": step.payload.get("exclude", [])},
    }


def has_effect(step: Step, result: Result | None) -> bool:
    """Whether a step is one that an engine repeats: not a rewind, nor one without a result."""
    return result is not None and step.kind is not Kind.REWIND


def chain_step(step: Step, result: Result | None, parent_key: str) -> ChainStep | None:
    """Return what an engine must do for a step; None for one without effect."""
    if result is None or not has_effect(step, result):
        return None
    common: dict[str, Any] = {
        "seq": step.seq,
        "key": step.key,
        "parent_key": parent_key,
        "nonce": step.nonce,
    }
    if step.kind is Kind.UPLOAD:
        files = tuple(
            PutFile(path=f["path"], blob=f["blob"], size=f["size"], mode=f.get("mode", 0o644))
            for f in step.payload.get("files", [])
        )
        return ChainStep(kind="upload", files=files, **common)
    if step.kind is Kind.MOUNT:
        return ChainStep(kind="mount", layer=step.payload["digest"], **common)
    # What was installed for a skill is part of its version: the files, not what an index has by now.
    installed = "skill" in step.payload and result.layer is not None
    if step.kind is Kind.CELL and not installed and repeats(result.status, result.usage):
        request = cell_request(step) | {"answers": result.answers}
        if "secrets" in step.payload:
            request["secrets"] = step.payload["secrets"]
        how: dict[str, Any] = {
            "status": str(result.status),
            "saved": has_saved(result.state_report),
        }
        return ChainStep(kind="cell", request=request, **how, **common)
    return ChainStep(kind="layer", layer=result.layer, **common)


def to_chain(steps: list[tuple[Step, Result | None]], root_key: str) -> list[ChainStep]:
    """Return the chain of logged steps, base first."""
    chain: list[ChainStep] = []
    for step, result in steps:
        entry = chain_step(step, result, chain[-1].key if chain else root_key)
        if entry is not None:
            chain.append(entry)
    return chain


def chain_root(steps: list[tuple[Step, Result | None]]) -> str:
    """Return the key that the first step with an effect stands on."""
    for step, result in steps:
        if step.kind is not Kind.REWIND and result is not None:
            return root_key(step.base_digest, step.runner_digest)
    return ""

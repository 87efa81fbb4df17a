"""Go back and branch off: rewinds and forks are steps and sandboxes like any other."""

from __future__ import annotations

import uuid

from ..errors import StepNotFoundError
from ..log import LogStore, SandboxRow
from ..steps import Kind, Result, Status, Step, fresh_nonce, root_key


def rewind(log: LogStore, sandbox_id: str, seq: int) -> Step:
    """Append a step which continues from an earlier one (0: the base); nothing is deleted.

    The caller holds the sandbox's lock.

    Raises
    ------
    StepNotFoundError
        The sandbox has no such step, or it has no result to continue from.
    """
    target = step_at(log, sandbox_id, seq) if seq else None
    any_step = target or next((step for step, _ in log.steps(sandbox_id, limit=1)), None)
    base, runner = (any_step.base_digest, any_step.runner_digest) if any_step else ("", "")
    step = log.append(
        Step(
            id=uuid.uuid4().hex,
            sandbox_id=sandbox_id,
            seq=0,
            parent_id=target.id if target else None,
            kind=Kind.REWIND,
            payload={"to": target.id if target else None, "seq": seq},
            nonce=fresh_nonce(),
            base_digest=base,
            runner_digest=runner,
            engine=any_step.engine if any_step else "",
            key=target.key if target else root_key(base, runner),
        )
    )
    log.finish(Result(step_id=step.id, status=Status.OK))
    return step


def fork(log: LogStore, sandbox_id: str, seq: int | None = None) -> SandboxRow:
    """Make a new sandbox that continues from a step of another one (None: its tip).

    Raises
    ------
    SandboxNotFoundError, StepNotFoundError
    """
    origin = log.sandbox(sandbox_id)
    target = log.tip(origin.id) if seq is None else None
    if seq:
        target = step_at(log, origin.id, seq)
    return log.create_sandbox(
        origin.owner, origin.notebook, parent_step=target.id if target else None
    )


def step_at(log: LogStore, sandbox_id: str, seq: int) -> Step:
    """Return a sandbox's finished step by its number.

    Raises
    ------
    StepNotFoundError
    """
    for step, result in log.steps(sandbox_id, after=seq - 1, limit=1):
        if step.seq == seq and result is not None:
            return step
    raise StepNotFoundError(f"{sandbox_id}:{seq}")

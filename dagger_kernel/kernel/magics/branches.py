"""``%sandbox rewind`` and ``%sandbox fork``: go on from an earlier step, here or in a copy."""

from __future__ import annotations

from ...sandbox import SandboxSession
from ...steps import Kind
from ..text import one_line
from .context import Context
from .parse import UsageError


async def rewind(context: Context, words: list[str]) -> None:
    """Continue from an earlier step; 0 is the beginning."""
    seq = _step_number("rewind", words)
    if seq is None:
        raise UsageError("%sandbox rewind needs a step's number: %sandbox log lists them.")
    session = await context.holder.get()
    await session.rewind(seq)
    context.print(f"The next cell continues {await _place(session, seq)}")
    context.print("The steps after it stay in the log.")


async def fork(context: Context, words: list[str]) -> None:
    """Go on in a new sandbox that continues from a step of this one, by default the last."""
    seq = _step_number("fork", words)
    old = await context.holder.get()
    place = "from where this one was." if seq is None else await _place(old, seq)
    new = await context.holder.fork(seq)
    context.print(f"This is a new sandbox, {new.id}: it continues {place}")
    context.print(f"The old one stays in the log: {old.id}")


def _step_number(name: str, words: list[str]) -> int | None:
    if not words:
        return None
    if len(words) > 1 or not words[0].isdecimal():
        raise UsageError(f"%sandbox {name} takes one step's number, not {' '.join(words)!r}.")
    return int(words[0])


async def _place(session: SandboxSession, seq: int) -> str:
    """Say in words where a step is; the beginning of its source tells more than its number."""
    if seq == 0:
        return "from the beginning: no variables, no files."
    for step, _ in await session.steps(after=seq - 1):
        if step.seq == seq and step.kind is Kind.CELL:
            first = next(iter(step.source.strip().splitlines()), "")
            return f"from step {seq}: {one_line(first)[:80]}"
        break
    return f"from step {seq}."

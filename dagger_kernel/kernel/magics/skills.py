"""``%sandbox skills``: what the administrator mounted."""

from __future__ import annotations

from ...steps import Kind
from ..text import human_size
from .context import Context


async def skills(context: Context, _words: list[str]) -> None:
    """List the mounted skills with their versions."""
    session = await context.holder.get()
    mounted = {
        step.payload["name"]: (step.seq, step.payload)
        for step, _ in await session.steps()
        if step.kind is Kind.MOUNT
    }
    for name, (seq, payload) in sorted(mounted.items()):
        size = human_size(payload["size"])
        context.print(
            f"/skills/{name}  version {payload['digest'][:12]}, {payload['files']} files, {size}, step {seq}"
        )
    if not mounted:
        configured = session.settings.skills
        context.print("The next cell mounts its skills." if configured else "There are no skills.")

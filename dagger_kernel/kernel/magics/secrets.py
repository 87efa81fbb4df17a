"""``%sandbox secret``: give secrets to the cells that follow. Their values are never in a cell."""

from __future__ import annotations

from ...settings import administrators_secret
from .context import Context
from .parse import UsageError

FORGET = "--forget"


async def secret(context: Context, words: list[str]) -> None:
    """List the secrets, ask for one, or forget one."""
    session = await context.holder.get()
    names = [word for word in words if word != FORGET]
    if len(names) > 1:
        raise UsageError(
            "%sandbox secret takes a name alone: a value in a cell would be in the notebook and the log.",
            kept="The cell was not logged; delete its text.",
        )
    if not names:
        given = session.secrets
        context.print(
            f"The next cells get {', '.join(given)}." if given else "The next cells get no secret."
        )
        return
    name = names[0]
    if FORGET in words:
        known = session.forget_secret(name)
        context.print(f"The next cells get no {name}." if known else f"There was no {name}.")
        return
    provided = administrators_secret(name) is not None
    session.give_secret(name, None if provided else await _asked(context, name))
    origin = ", which the administrator provides" if provided else ""
    context.print(
        f"The next cells get {name}{origin}, in their environment. It is not logged and not saved."
    )


async def _asked(context: Context, name: str) -> str:
    if context.ask is None:
        raise UsageError(
            f"This client takes no questions, so {name} cannot be typed in.",
            remedy="Let the administrator provide it, or use `Sandbox.secret` of the Python API.",
        )
    return await context.ask(f"{name}: ", password=True)

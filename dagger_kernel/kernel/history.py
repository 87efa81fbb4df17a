"""The history of inputs, answered from the log: it outlives the kernel process."""

from __future__ import annotations

from typing import Any

from .holder import SessionHolder

KINDS = frozenset({"tail", "range", "search"})


async def history(holder: SessionHolder, content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a ``history_reply``; unknown fields are ignored.

    Entries are ``(session, line, input)``, or ``(session, line, (input, output))`` when output is
    asked for.
    """
    kind = content.get("hist_access_type", "tail")
    if kind not in KINDS:
        return {"status": "ok", "history": []}
    session = await holder.get()
    found = await session.history(
        kind=kind,
        output=bool(content.get("output", False)),
        session=_integer(content.get("session"), 0),
        start=_integer(content.get("start")),
        stop=_integer(content.get("stop")),
        n=_integer(content.get("n")),
        pattern=content.get("pattern") if isinstance(content.get("pattern"), str) else None,
        unique=bool(content.get("unique", False)),
    )
    return {"status": "ok", "history": found}


def _integer(value: Any, default: int | None = None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else default

"""The history of inputs over all of an owner's kernel sessions, as Jupyter's clients ask for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from . import tables as t
from .database import Database
from .reader import Reader
from .rows import dump

Entry = tuple[int, int, str | tuple[str, str | None]]
"""Session, line and input; or ``(input, output)`` in place of the input."""

_PAGE = 500


class History:
    """Answers `LogStore.history`."""

    def __init__(self, database: Database, reader: Reader) -> None:
        self._database, self._reader = database, reader

    def tail(self, where: list[ColumnElement[bool]], n: int, *, output: bool) -> list[Entry]:
        """Return the last ``n`` entries, the oldest first."""
        return self._entries(self._newest(where, limit=n), output=output)

    def range(
        self,
        where: list[ColumnElement[bool]],
        session: int,
        start: int,
        stop: int | None,
        *,
        output: bool,
    ) -> list[Entry]:
        """Return lines ``start`` to ``stop`` (without it) of a session.

        The session counts back from the newest one when it is 0 or negative, and lines from the one after the
        session's last when they are negative. Without a stop, or with 0, the session's end is the end.
        """
        if session <= 0:
            session += self._last(where, t.step.c.session)
        lines = [*where, t.step.c.session == session]
        if start < 0 or (stop or 0) < 0:
            end = self._last(lines, t.step.c.line) + 1
            start += end if start < 0 else 0
            stop = stop + end if stop and stop < 0 else stop
        lines.append(t.step.c.line >= start)
        if stop:
            lines.append(t.step.c.line < stop)
        return self._entries(self._newest(lines), output=output)

    def search(
        self,
        where: list[ColumnElement[bool]],
        pattern: str,
        n: int | None,
        *,
        unique: bool,
        output: bool,
    ) -> list[Entry]:
        """Return the last ``n`` entries that a glob matches; with ``unique`` each input once."""
        matches = glob(pattern)
        seen: set[str] = set()

        def wanted(row: RowMapping) -> bool:
            source = json.loads(row["source"])
            if not matches.fullmatch(source) or (unique and source in seen):
                return False
            seen.add(source)
            return True

        return self._entries(self._newest(where, limit=n, wanted=wanted), output=output)

    def where(self, owner: str, sandbox_id: str | None) -> list[ColumnElement[bool]]:
        """Return the conditions of an owner's cells."""
        conditions = [t.step.c.line.is_not(None), t.sandbox.c.owner == dump(owner)]
        if sandbox_id is not None:
            conditions.append(t.step.c.sandbox_id == sandbox_id)
        return conditions

    def _newest(
        self,
        where: list[ColumnElement[bool]],
        *,
        limit: int | None = None,
        wanted: Callable[[RowMapping], bool] | None = None,
    ) -> list[RowMapping]:
        """Return the newest entries that are wanted, the newest first."""
        # Sorted by ids alone, so that long sources are read for the chosen rows only.
        chosen = (
            select(t.step.c.id)
            .join(t.sandbox, t.sandbox.c.id == t.step.c.sandbox_id)
            .where(*where)
            .order_by(*_newest_first())
            .limit(limit if wanted is None else None)
            .subquery()
        )
        query = (
            select(t.step.c.id, _session(), t.step.c.line, t.step.c.source)
            .join(chosen, chosen.c.id == t.step.c.id)
            .order_by(*_newest_first())
        )

        def work(connection: Connection, _repeated: bool) -> list[RowMapping]:
            if wanted is None:
                return list(connection.execute(query).mappings())
            # In pages of one query: a search mostly ends early, and all of it sees one snapshot.
            paged = query.execution_options(yield_per=_PAGE)
            with connection.execute(paged) as rows:
                return list(islice(filter(wanted, rows.mappings()), limit))

        return self._database.run(work)

    def _last(self, where: list[ColumnElement[bool]], number: ColumnElement[Any]) -> int:
        """Return the highest session or line; 0 if there is none."""
        query = (
            select(func.max(number))
            .join(t.sandbox, t.sandbox.c.id == t.step.c.sandbox_id)
            .where(*where)
        )

        def work(connection: Connection, _repeated: bool) -> int:
            return int(connection.scalar(query) or 0)

        return self._database.run(work)

    def _entries(self, rows: list[RowMapping], *, output: bool) -> list[Entry]:
        """Return entries, the oldest first, from rows with the newest first."""
        entries: list[Entry] = []
        for row in reversed(rows):
            source = json.loads(row["source"])
            value = (source, self._value(row["id"])) if output else source
            entries.append((row["session"], row["line"], value))
        return entries

    def _value(self, step_id: str) -> str | None:
        """Return the text of a cell's value."""
        _, result = self._reader.pair(step_id)
        for item in reversed(result.outputs if result else []):
            if item.get("output_type") == "execute_result":
                text: Any = item.get("data", {}).get("text/plain")
                return "".join(text) if isinstance(text, list) else text
        return None


def _session() -> ColumnElement[int]:
    return func.coalesce(t.step.c.session, 0).label("session")


def _newest_first() -> tuple[ColumnElement[Any], ...]:
    return (
        func.coalesce(t.step.c.session, 0).desc(),
        t.step.c.created.desc(),
        t.step.c.seq.desc(),
    )


def glob(pattern: str) -> re.Pattern[str]:
    """Return the expression of a glob as IPython's history (SQLite's GLOB) reads it.

    ``*`` and ``?`` match anything, newlines too; ``[ab]``, ``[a-z]`` and ``[^ab]`` one character.
    """
    head, *rest = _split(pattern)
    # What stands between two stars may match at its first place for good: without going back into it
    # no pattern takes more than quadratic time.
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    return re.compile(head + middle + (f".*{rest[-1]}" if rest else ""), re.DOTALL)


def _split(pattern: str) -> list[str]:
    """Return expressions of what stands between the stars of a glob."""
    parts, at = [""], 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        end = pattern.find("]", at + 1 + pattern.startswith("^", at))
        if character == "*":
            parts.append("")
        elif character == "?":
            parts[-1] += "."
        elif character == "[" and end > 0:
            parts[-1] += _members(pattern[at:end])
            at = end + 1
        else:
            parts[-1] += re.escape(character)
    return parts


def _members(members: str) -> str:
    """Return the expression of what stands between brackets."""
    negated, members = members.startswith("^"), members.removeprefix("^")
    inside, at = "", 0
    while at < len(members):
        low = high = members[at]
        if at + 2 < len(members) and members[at + 1] == "-":
            high = members[at + 2]
            at += 2
        at += 1
        if low <= high:  # a range that goes backwards holds nothing, as in SQLite
            inside += f"{re.escape(low)}-{re.escape(high)}"
    if not inside:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{inside}]"

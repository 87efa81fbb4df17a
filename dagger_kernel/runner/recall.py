"""What IPython asks its database of inputs, answered from the sandbox's own: ``%history -l``, ``-g``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

Line = tuple[int, int, Any]
"""Session (0: this one), line, and the input; or ``(input, output)`` in its place."""


class Recall:
    """Stands in for the questions of a `HistoryManager`; `install` puts it in their place.

    Parameters
    ----------
    inputs
        Yields number, raw and plain source of earlier cells, and whether they are stored.
    current
        Number and source of the running cell: a search finds it too.
    """

    def __init__(
        self, inputs: Iterable[tuple[int, str, str, bool]], current: tuple[int, str]
    ) -> None:
        self._inputs = inputs
        self._current = current

    def install(self, manager: Any) -> None:
        """Answer in place of the database, which does not exist."""
        manager.get_tail, manager.search = self.tail, self.search

    def tail(
        self, n: int = 10, raw: bool = True, output: bool = False, include_latest: bool = False
    ) -> list[Line]:
        """Return the last inputs, the oldest first."""
        lines = list(self._lines(raw=raw, latest=include_latest))
        return self._shaped(lines[-n:] if n > 0 else [], output=output)

    def search(
        self,
        pattern: str = "*",
        raw: bool = True,
        search_raw: bool = True,
        output: bool = False,
        n: int | None = None,
        unique: bool = False,
    ) -> list[Line]:
        """Return the inputs that a glob matches, the oldest first."""
        texts = {number: text for _, number, text in self._lines(raw=search_raw, latest=True)}
        found, seen = [], set()
        for line in reversed(list(self._lines(raw=raw, latest=True))):
            if fnmatchcase(texts[line[1]], pattern) and not (unique and line[2] in seen):
                seen.add(line[2])
                found.append(line)
        return self._shaped(list(islice(found, n))[::-1], output=output)

    def _lines(self, *, raw: bool, latest: bool) -> Iterator[Line]:
        for number, written, plain, stored in self._inputs:
            if stored:
                yield 0, number, written if raw else plain.rstrip("\n")
        if latest:
            yield 0, *self._current

    @staticmethod
    def _shaped(lines: list[Line], *, output: bool) -> list[Line]:
        return [(a, b, (text, None)) for a, b, text in lines] if output else lines

"""The interpreter's own switches: limits, warning filters, locale, decimal context."""

from __future__ import annotations

import decimal
import locale
import sys
import warnings
from typing import Any

from .base import Provider


class Interpreter(Provider):
    """Limits and switches of the interpreter."""

    name = "interpreter"

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _now() -> dict[str, Any]:
        return {
            "recursion": sys.getrecursionlimit(),
            "digits": sys.get_int_max_str_digits(),
            "argv": [str(item) for item in sys.argv],
        }

    def capture(self) -> Any:
        return {k: v for k, v in self._now().items() if self._base[k] != v} or None

    def restore(self, value: Any) -> None:
        if "recursion" in value:
            sys.setrecursionlimit(value["recursion"])
        if "digits" in value:
            sys.set_int_max_str_digits(value["digits"])
        if "argv" in value:
            sys.argv[:] = value["argv"]


class Warnings(Provider):
    """Warning filters."""

    name = "warnings"
    plain = False

    def start(self) -> None:
        self._base = list(warnings.filters)
        self._waiting: list[Any] = []

    def capture(self) -> Any:
        now = list(warnings.filters)
        if now == self._base and not self._waiting:
            return None
        return [self._named(entry) for entry in now] + self._waiting

    @staticmethod
    def _named(entry: Any) -> Any:
        """Name a library's category: looking at a filter must not import the library."""
        action, message, category, module, line = entry
        place = (category.__module__, category.__qualname__)
        found = getattr(sys.modules.get(place[0]), place[1], None)
        named = place if found is category and place[0] != "__main__" else category
        return (action, message, named, module, line)

    def restore(self, value: Any) -> None:
        restored = []
        for entry in value:
            action, message, category, module, line = entry
            if isinstance(category, tuple):
                category = getattr(sys.modules.get(category[0]), category[1], None)
                if category is None:
                    # Its library is not loaded; importing it sets its filters anew.
                    self._waiting.append(entry)
                    continue
            restored.append((action, message, category, module, line))
        warnings.filters[:] = restored  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]


class Locale(Provider):
    """The process's locale."""

    name = "locale"

    def start(self) -> None:
        self._base = locale.setlocale(locale.LC_ALL)

    def capture(self) -> Any:
        now = locale.setlocale(locale.LC_ALL)
        return now if now != self._base else None

    def restore(self, value: Any) -> None:
        try:
            locale.setlocale(locale.LC_ALL, value)
        except locale.Error:
            pass


class Decimals(Provider):
    """The decimal context."""

    name = "decimal"
    plain = False

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _now() -> str:
        return repr(decimal.getcontext())

    def capture(self) -> Any:
        return decimal.getcontext() if self._now() != self._base else None

    def restore(self, value: Any) -> None:
        decimal.setcontext(value)

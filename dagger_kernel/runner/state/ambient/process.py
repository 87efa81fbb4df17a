"""The interpreter and the process: directory, environment, search path, limits."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from ...skills import with_skills
from .base import Provider


class Directory(Provider):
    """The working directory; one which is gone by now is left alone."""

    name = "cwd"

    def capture(self) -> Any:
        try:
            return os.getcwd()
        except OSError:
            return None

    def restore(self, value: Any) -> None:
        try:
            os.chdir(value)
        except OSError:
            pass


class Environment(Provider):
    """Changes to the environment."""

    name = "environ"

    def seed(self, seed: bytes) -> None:
        # Not earlier: what the step itself sets is no change of the user's.
        del seed
        self._base = dict(os.environ)

    def capture(self) -> Any:
        now = dict(os.environ)
        changed = {k: v for k, v in now.items() if self._base.get(k) != v}
        removed = [k for k in self._base if k not in now]
        return [changed, removed] if changed or removed else None

    def restore(self, value: Any) -> None:
        changed, removed = value
        os.environ.update(changed)
        for name in removed:
            os.environ.pop(name, None)
        if "TZ" in changed or "TZ" in removed:
            time.tzset()


class SearchPath(Provider):
    """``sys.path``."""

    name = "path"

    def start(self) -> None:
        self._base = list(sys.path)

    def capture(self) -> Any:
        entries = [str(entry) for entry in sys.path]
        return entries if entries != self._base else None

    def restore(self, value: Any) -> None:
        sys.path[:] = with_skills(value, self._base)


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

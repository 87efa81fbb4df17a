"""The process: directory, environment, search path."""

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
        self._raw = dict(os.environ._data)  # type: ignore[attr-defined]

    @property
    def _base(self) -> dict[str, str]:
        return {os.fsdecode(name): os.fsdecode(value) for name, value in self._raw.items()}

    def capture(self) -> Any:
        if os.environ._data == self._raw:  # type: ignore[attr-defined]
            return None  # decoding a hundred texts would take longer
        now, base = dict(os.environ), self._base
        changed = {k: v for k, v in now.items() if base.get(k) != v}
        removed = [k for k in base if k not in now]
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

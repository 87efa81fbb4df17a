"""Small things worth remembering between kernels: a JSON object in a file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Memory:
    """Names and values. Losing it costs finding them out again, nothing else; so it never raises.

    Two of one file are equal, so that what is cached by them does not grow with every engine.
    """

    path: Path

    def get(self, name: str) -> Any:
        """Return what is kept under a name, else None."""
        return self.all().get(name)

    def all(self) -> dict[str, Any]:
        """Return everything."""
        try:
            data = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def put(self, name: str, value: Any) -> None:
        """Keep a value; without a directory one can write to, nothing is kept."""
        fresh = self.path.with_suffix(f".{os.getpid()}")
        try:
            fresh.write_text(json.dumps({**self.all(), name: value}, indent=1), "ascii")
            os.replace(fresh, self.path)
        except OSError:
            fresh.unlink(missing_ok=True)

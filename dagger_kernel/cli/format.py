"""How ``dagger-kernel audit`` writes; apart from it, because the options need it at start-up."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """How records are written."""

    TABLE = "table"
    LINES = "lines"
    CSV = "csv"

"""The limits of one step, recorded with it, so that a replay runs under the same ones."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

MiB = 1024 * 1024
MAY_BE_ZERO = frozenset(("output_bytes", "kept_output_bytes", "file_bytes", "export_files"))


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one step.

    Attributes
    ----------
    cpu_seconds
        CPU time of all processes of the cell, in seconds.
    memory_bytes
        Anonymous memory of all processes of the cell, in bytes.
    wall_seconds
        Wall-clock time, in seconds; time spent waiting for ``input()`` counts.
    output_bytes
        Text output shown, in UTF-8 bytes.
    kept_output_bytes
        Text output kept for the link to the full text, in bytes.
    file_bytes
        Size of one exported or uploaded file, in bytes.
    export_files
        Number of files exported by one cell.
    processes
        Processes and threads of the cell at one time.
    open_files
        Open files of one process.
    disk_bytes
        Bytes one step may write to the sandbox's file system.
    """

    cpu_seconds: float = 30.0
    memory_bytes: int = 1024 * MiB
    wall_seconds: float = 120.0
    output_bytes: int = 256 * 1024
    kept_output_bytes: int = 16 * MiB
    file_bytes: int = 16 * MiB
    export_files: int = 50
    processes: int = 256
    open_files: int = 1024
    disk_bytes: int = 4096 * MiB

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able mapping."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Limits:
        """Read what `to_json` wrote; unknown names are ignored, missing ones take the default."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})

    def unusable(self) -> str | None:
        """Return the name of the first limit that is no usable number, None if all are."""
        for name, value in self.to_json().items():
            if not (value > 0 or (value == 0 and name in MAY_BE_ZERO)) or value == float("inf"):
                return name
        return None

    def capped(self, maximum: Limits) -> Limits:
        """Return these limits, none above the maximum."""
        return replace(
            self,
            **{
                field.name: min(getattr(self, field.name), getattr(maximum, field.name))
                for field in fields(self)
            },
        )

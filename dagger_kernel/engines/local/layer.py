"""One cached state: what its record on the disk says, and what its directories are told by."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

RECORD = "layer.json"
SETTLED = "settled"
"""File beside the record: the layer's bytes have reached the disk."""
NAME_DIGITS = 20
"""Hexadecimal digits of a key in a directory name (80 bits): overlay options must stay under one page."""

Ground = tuple[tuple[int, int] | None, ...]
"""What identifies each directory of a state, top first; None for a missing one."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A cached state.

    Attributes
    ----------
    key, parent_key
        Full keys.
    depth
        Steps since the base.
    lowers
        Directory names from this layer down to the base (which is not in the list).
    base
        Digest of the base below them.
    """

    key: str
    parent_key: str
    depth: int
    lowers: tuple[str, ...]
    base: str

    def record(self, ground: Ground) -> str:
        """Return the text of its record."""
        values = {**asdict(self), "boot": boot_id(), "ground": ground}
        return json.dumps({**values, "parent": values.pop("parent_key")})

    @classmethod
    def recorded(cls, directory: Path) -> tuple[Layer, Ground] | None:
        """Read the record in a layer's directory.

        None where there is none, where it is damaged, and where the bytes of a layer of an earlier run of the
        machine may not have reached the disk.
        """
        try:
            data = json.loads((directory / RECORD).read_bytes())
            layer = cls(
                data["key"], data["parent"], data["depth"], tuple(data["lowers"]), data["base"]
            )
            ground = tuple((int(node), int(moment)) for node, moment in data["ground"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        settled = data.get("boot") == boot_id() or (directory / SETTLED).exists()
        return (layer, ground) if settled else None


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a directory from another one of its name; None: there is none.

    Its number (which a later one may get again) and the time of its last entry; a layer gets no more.
    """
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_ino, info.st_mtime_ns


@functools.cache
def boot_id() -> str:
    """Return what names this run of the machine's kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def name_of(key: str) -> str:
    """Return the directory name of a key."""
    return key[:NAME_DIGITS]

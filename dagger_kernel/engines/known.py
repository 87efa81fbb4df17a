"""Which base new sandboxes get, by what was asked for: a small JSON file beside the log for each engine."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..settings import Settings

FILES = {"local": "base-recipes.json", "dagger": "dagger-bases.json"}


class KnownBases:
    """What one engine remembers; losing it costs a look at the bases, nothing else."""

    def __init__(self, settings: Settings, engine: str) -> None:
        self._path = settings.data_path / FILES[engine]

    def get(self, wanted: str) -> str | None:
        """Return the digest of the base that was made for what this name stands for, if any."""
        return _read(self._path).get(wanted)

    def put(self, wanted: str, digest: str) -> None:
        """Remember a base; without a writable directory it is found out again next time."""
        known = {**_read(self._path), wanted: digest}
        fresh = self._path.with_suffix(f".{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh.write_text(json.dumps(known, indent=1), "ascii")
            os.replace(fresh, self._path)
        except OSError:
            fresh.unlink(missing_ok=True)


def remembered(settings: Settings) -> list[str]:
    """Return the digests of all bases that new sandboxes may get: their documents are blobs that must stay."""
    paths = [settings.data_path / name for name in FILES.values()]
    return [digest for path in paths for digest in _read(path).values()]


def _read(path: Path) -> dict[str, str]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    found = data if isinstance(data, dict) else {}
    return {name: digest for name, digest in found.items() if isinstance(digest, str)}

"""Which base new sandboxes get, by what was asked for: a small file beside the log for each engine."""

from __future__ import annotations

import contextlib

from ..settings import Settings
from .memory import Memory

FILES = {"local": "base-recipes.json", "dagger": "dagger-bases.json"}


class KnownBases:
    """What one engine remembers."""

    def __init__(self, settings: Settings, engine: str) -> None:
        self._directory = settings.data_path
        self._memory = Memory(self._directory / FILES[engine])

    def get(self, wanted: str) -> str | None:
        """Return the digest of the base that was made for what this name stands for, if any."""
        digest = self._memory.get(wanted)
        return digest if isinstance(digest, str) else None

    def put(self, wanted: str, digest: str) -> None:
        """Remember a base."""
        with contextlib.suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._memory.put(wanted, digest)


def remembered(settings: Settings) -> list[str]:
    """Return the digests of all bases that new sandboxes may get: their documents are blobs that must stay."""
    memories = [Memory(settings.data_path / name) for name in FILES.values()]
    return [
        digest for memory in memories for digest in memory.all().values() if isinstance(digest, str)
    ]

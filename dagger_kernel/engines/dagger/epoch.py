"""The epoch: text in the root of every chain. Another one, and the engine's cache answers nothing from before."""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING

from ...settings import Settings
from . import dress

if TYPE_CHECKING:
    import dagger

FILE = "dagger-epoch"


class Epoch:
    """Kept beside the layers of the data directory: empty until a first one begins."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.layers_path / FILE
        self._text: str | None = None

    def begin(self) -> None:
        """Begin another one, for this kernel and those of the data directory that start later."""
        self._text = secrets.token_hex(8)
        # Where it cannot be written it holds for this kernel alone.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.write_text(self._text, "ascii")

    def on(self, container: dagger.Container) -> dagger.Container:
        """Return the container with the epoch in it."""
        if self._text is None:
            try:
                self._text = self._path.read_text("ascii").strip()
            except (OSError, ValueError):
                self._text = ""
        return container.with_env_variable(dress.EPOCH, self._text) if self._text else container

"""``dagger-kernel prepare``: build the base before anybody waits for it."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Self

from dagger_kernel.errors import SandboxDisabledError
from dagger_kernel.settings import Settings

from . import output

if TYPE_CHECKING:
    from types import TracebackType

    from dagger_kernel.engines.base import Base, BlobSource


def run(*, as_json: bool) -> None:
    """Build the base of the selected engine, with progress on standard error."""
    settings = Settings.load()
    start = time.perf_counter()
    name, base = prepare(settings)
    seconds = time.perf_counter() - start
    if as_json:
        output.print_json({"engine": name, "seconds": round(seconds, 3), **asdict(base)})
        return
    print(f"The base of the {name} engine is ready: {base.description or base.digest}")
    print(f"({base.digest[:12]}, {output.human_seconds(seconds)})")


def prepare(settings: Settings) -> tuple[str, Base]:
    """Make sure the base exists; return the engine's name and the base."""
    from .data import opened_log

    if not settings.enabled:
        raise SandboxDisabledError
    with opened_log(settings, create=True) as store, Progress() as progress:
        return asyncio.run(_prepare(settings, store.blobs, progress))


async def _prepare(settings: Settings, blobs: BlobSource, progress: Progress) -> tuple[str, Base]:
    from dagger_kernel.engines.select import select_engine

    engine = await select_engine(settings, blobs)
    try:
        return engine.name, await engine.prepare(progress)
    finally:
        await engine.close()


LINE_SECONDS = 2.0
"""Without a terminal: at most one line of progress in so many seconds."""


class Progress:
    """Shows short texts about long work: one changing line on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = ""
        self._shown = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self("")

    def __call__(self, text: str) -> None:
        """Show a text; an empty one ends the work."""
        text = output.clean(text)
        if text == self._last:
            return
        self._last = text
        if self._terminal:
            print(f"\r\x1b[2K{text[:100]}", end="", file=sys.stderr, flush=True)
        elif text and time.monotonic() - self._shown >= LINE_SECONDS:
            self._shown = time.monotonic()
            print(f"   {text}", file=sys.stderr, flush=True)

"""Making missing states again: repeat a chain's steps from the deepest layer that exists."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from ...errors import ReplayError, RoomLostError
from ..base import BlobSource, ChainStep, Progress, Replayed
from ..folding import folded
from ..replay import Recorder
from . import archive
from .layer import Layer
from .layers import LayerStore, full_or, make_room
from .room import LocalRoom

PATIENCE = 2
"""How often a step is tried whose room is lost."""


class Replay:
    """Repeats steps.

    Parameters
    ----------
    layers, blobs
        Where layers are, and the contents of uploads and stored layers.
    open_room
        Opens a room on a layer for a nonce.
    replayed
        Told of each repeated cell.
    """

    def __init__(
        self,
        layers: LayerStore,
        blobs: BlobSource,
        open_room: Callable[[Layer, str], Awaitable[LocalRoom]],
        replayed: Replayed,
    ) -> None:
        self._layers = layers
        self._blobs = blobs
        self._open_room = open_room
        self._replayed = replayed

    async def run(self, chain: Sequence[ChainStep], root: Layer, progress: Progress) -> Layer:
        """Return the layer of the chain's last step; the root's of an empty chain."""
        layer, missing = root, len(chain)
        for index in range(len(chain), 0, -1):
            found = self._layers.get(chain[index - 1].key)
            if found is not None:
                layer, missing = found, len(chain) - index
                break
        for count, step in folded(chain[len(chain) - missing :]):
            progress(f"replaying {count}/{missing}")
            layer = await self._repeat(step, layer)
        if missing:
            progress("")
        return layer

    async def _repeat(self, step: ChainStep, parent: Layer) -> Layer:
        if step.kind == "cell":
            await self._repeat_cell(step, parent)
        else:
            directory = await make_room(self._layers, parent)
            try:
                await asyncio.to_thread(self._fill, step, self._layers.root / directory / "fs")
                await asyncio.to_thread(self._layers.commit, directory, step.key, parent)
            except OSError as error:
                self._layers.drop(directory)
                raise full_or(error) from error
            except BaseException:
                self._layers.drop(directory)
                raise
        layer = self._layers.get(step.key)
        if layer is None:
            raise ReplayError(f"Step {step.seq} left no layer.", engine="local", seq=step.seq)
        return layer

    async def _repeat_cell(self, step: ChainStep, parent: Layer) -> None:
        for attempt in range(1, PATIENCE + 1):
            recorder = Recorder(step.request.get("answers") or [])
            room = await self._open_room(parent, step.nonce)
            try:
                outcome = await room.run({**step.request, "replay": True}, recorder)
                if not step.is_repeated_by(outcome):
                    why = outcome.reason or outcome.state.get("error") or outcome.exit_code
                    raise RoomLostError(f"this time it ended with {outcome.status}, {why}.")
            except RoomLostError as error:
                # A repeated step may be tried again: nothing outside depends on it yet.
                await room.close()
                if attempt == PATIENCE:
                    raise ReplayError(
                        f"Step {step.seq} could not be repeated: {error.what}",
                        engine="local",
                        seq=step.seq,
                    ) from error
            except BaseException:
                await room.close()
                raise
            else:
                break
        await room.commit(step.key)
        self._replayed(step, outcome, recorder.frames)

    def _fill(self, step: ChainStep, upper: Path) -> None:
        if step.kind == "upload":
            for item in step.files:
                with self._blobs.open(item.blob) as source:
                    archive.put_file(upper, item.path, item.mode, source)
        elif step.layer is not None:
            with self._blobs.open(step.layer) as source:
                archive.unpack(source, upper)

"""Make the state after a chain: cached steps cost nothing, missing ones connect and get their step."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import BlobError, DaggerKernelError, LinkError, ReplayError, StorageFullError
from ..base import BlobSource, ChainStep, Progress, Replayed
from ..folding import folded
from ..replay import Recorder
from . import faults
from .chain import FLATTEN_EVERY, FOLD_BYTES, SYNC_EVERY, Ground
from .delivery import send_archive, send_files
from .room import RepeatRoom
from .server import LinkServer, Visitor
from .states import State, States

if TYPE_CHECKING:
    import dagger

PATIENCE = 2


class Replay:
    """One walk along a chain. Used once.

    Parameters
    ----------
    ground, states, server, blobs
        Of the running session.
    chain
        All steps since the base.
    progress, replayed
        See `Engine.open`.
    """

    def __init__(
        self,
        ground: Ground,
        states: States,
        server: LinkServer,
        blobs: BlobSource,
        *,
        chain: Sequence[ChainStep],
        progress: Progress,
        replayed: Replayed,
    ) -> None:
        self._ground = ground
        self._states = states
        self._server = server
        self._blobs = blobs
        self._chain = chain
        self._progress = progress
        self._replayed = replayed
        self._first = 0  # position of the first step that was not cached
        self._last = 0  # position of the latest one
        self._deliveries: set[asyncio.Task[None]] = set()
        self._failure: Exception | None = None
        self._trouble = asyncio.Event()

    async def run(self, root: State) -> State:
        """Return the state after the chain's last step.

        Raises
        ------
        ReplayError, BlobError, EngineConnectionError, StorageFullError
        """
        if self._chain and (known := self._states.deepest(self._chain[-1:])) is not None:
            return known
        steps = folded(self._chain, every=FLATTEN_EVERY, most_bytes=FOLD_BYTES)
        state = self._states.deepest([step for _, step in steps]) or root
        ahead = [item for item in steps if item[0] > state.position]
        try:
            while ahead:
                state = await self._advance(state, ahead[:SYNC_EVERY])
                del ahead[:SYNC_EVERY]
        finally:
            if self._first:
                self._progress("")
        return state

    async def _advance(self, state: State, ahead: Sequence[tuple[int, ChainStep]]) -> State:
        """Evaluate some steps, each with its position, by one query."""
        made: list[State] = []
        container = state.container
        for position, step in ahead:
            container = self._ground.with_step(container, step)
            container = self._ground.settled(container, position)
            made.append(
                State(
                    key=step.key,
                    parent_key=step.parent_key,
                    position=position,
                    kind=step.kind,
                    container=container,
                )
            )
        synced = await self._evaluate(container, made, [step for _, step in ahead])
        last = made.pop()
        made.append(
            State(
                key=last.key,
                parent_key=last.parent_key,
                position=last.position,
                kind=last.kind,
                container=synced,
            )
        )
        for each in made:
            self._states.put(each)
        return made[-1]

    async def _evaluate(
        self, container: dagger.Container, made: list[State], steps: Sequence[ChainStep]
    ) -> dagger.Container:
        for attempt in range(1, PATIENCE + 1):
            self._expect(made, steps)
            try:
                synced = await self._sync(container)
            except Exception as error:
                failure = await self._settle(error)
                # A repeated step may be tried again: nothing outside depends on it yet.
                if attempt == PATIENCE or not isinstance(failure, ReplayError):
                    raise failure from error
            else:
                return synced
            finally:
                for step in steps:
                    self._server.forget(step.nonce)
                for task in self._deliveries:
                    task.cancel()
        raise AssertionError("unreachable")

    async def _sync(self, container: dagger.Container) -> dagger.Container:
        """Evaluate; give up when a delivery fails: its exec would wait for ever."""
        evaluation = asyncio.create_task(evaluated(container))
        trouble = asyncio.create_task(self._trouble.wait())
        try:
            await asyncio.wait((evaluation, trouble), return_when=asyncio.FIRST_COMPLETED)
            if not evaluation.done():
                raise LinkError("A step could not be delivered.")
            synced = await evaluation
            await asyncio.gather(*self._deliveries)
        finally:
            for task in (evaluation, trouble):
                task.cancel()
            await asyncio.gather(evaluation, trouble, return_exceptions=True)
        return synced

    async def _settle(self, error: Exception) -> DaggerKernelError:
        """Return what the failed evaluation means."""
        await asyncio.gather(*self._deliveries, return_exceptions=True)
        failure, self._failure = self._failure, None
        self._trouble.clear()
        if isinstance(failure, (BlobError, StorageFullError)):
            return failure
        error = failure or error
        if faults.exit_code(error) is None and not isinstance(error, LinkError):
            translated = faults.translate(error, "replaying")
            if faults.broke(error) or not hasattr(translated, "engine"):
                return translated
        seq = self._chain[self._last - 1].seq if self._last else 0
        what = faults.brief(str(error))
        return ReplayError(f"Step {seq} could not be repeated: {what}", engine=faults.NAME, seq=seq)

    def _expect(self, made: list[State], steps: Sequence[ChainStep]) -> None:
        for state, step in zip(made, steps, strict=True):

            def arrived(
                visitor: Visitor, step: ChainStep = step, position: int = state.position
            ) -> None:
                self._first = self._first or position
                self._last = position
                count, total = position - self._first + 1, len(self._chain) - self._first + 1
                self._progress(f"replaying {count}/{total}")
                task = asyncio.create_task(self._deliver(visitor, step))
                self._deliveries.add(task)
                task.add_done_callback(self._deliveries.discard)

            self._server.expect(step.nonce, arrived)

    async def _deliver(self, visitor: Visitor, step: ChainStep) -> None:
        """Give a missing step what it needs, and listen to it."""
        try:
            if step.kind == "cell":
                await self._deliver_cell(visitor, step)
            elif step.kind == "upload":
                await send_files(visitor.link, step.files, self._blobs)
            elif step.layer is not None:
                await send_archive(visitor.link, step.layer, self._blobs)
        except Exception as error:
            # Told by whoever evaluates; a step whose exec succeeded all the same has its state.
            self._failure = error
            self._trouble.set()
        finally:
            visitor.link.close()

    async def _deliver_cell(self, visitor: Visitor, step: ChainStep) -> None:
        recorder = Recorder(step.request.get("answers") or [])
        room = RepeatRoom(visitor.link, step.nonce, step.parent_key)
        try:
            outcome = await room.run({**step.request, "replay": True}, recorder)
        except BaseException:
            await room.close()
            raise
        self._replayed(step, outcome, recorder.frames)


async def evaluated(container: dagger.Container) -> dagger.Container:
    """Return the container, evaluated: a coroutine, which the SDK's awaitables are not."""
    return await container.sync()

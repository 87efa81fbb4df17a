"""The engine contract.

An engine makes states and runs steps on them. It knows nothing of the log or of
Jupyter: the use cases (`dagger_kernel.sandbox`) hand it chains and take outcomes.
All methods are coroutines of one event loop: the loop that called `Engine.start`.

Every state an engine holds is a cache entry named by its key. `Engine.open` makes
what is missing again by repeating the chain's steps; so layers may vanish at any
time between two calls.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStep:
    """One step of a chain, as an engine needs it.

    Attributes
    ----------
    seq
        For messages ("replaying 12/40" counts the missing steps; errors name the seq).
    kind
        ``cell`` (repeat the request in a room), ``upload`` (put the files in, one layer),
        ``mount`` (unpack an archive at ``/skills``, which cells can only read) or ``layer`` (apply a
        stored layer difference instead of repeating).
    key, parent_key, nonce
        See `dagger_kernel.steps`.
    request
        Of a cell: the ``step`` frame's head for the link (`runner.protocol`).
    files
        Of an upload: where each blob goes.
    layer
        Of a mount: the digest of the archive. Of a layer: that of the stored difference; None: the step had no effect that
        could be stored, its state equals its parent's.
    status
        Of a cell: how it ended, as recorded.
    saved
        Whether its variables were saved, as recorded.
    """

    seq: int
    kind: str
    key: str
    parent_key: str
    nonce: str
    request: dict[str, Any] = field(default_factory=dict)
    files: tuple[PutFile, ...] = ()
    layer: str | None = None
    status: str = ""
    saved: bool = False

    def is_repeated_by(self, outcome: Outcome) -> bool:
        """Whether an outcome is one of this step: a killed or interrupted run is another one.

        What it did before its end would become the state, and what the recorded run did be lost.
        """
        if outcome.status in ("limit", "interrupted") or (self.saved and not outcome.saved):
            return False
        return outcome.exit_code >= 0 or self.status in ("", outcome.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class PutFile:
    """A file to put into a state: ``path`` relative to ``/home/sandbox``, bytes from the blob store."""

    path: str
    blob: str
    size: int
    mode: int = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A file of a state.

    ``path`` is relative to ``/home/sandbox``; ``kind`` is ``file``, ``directory``, ``link`` or ``other``;
    ``size`` in bytes; ``mtime`` in seconds since the epoch.
    """

    path: str
    kind: str
    size: int = 0
    mode: int = 0
    mtime: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The warm image every chain starts from.

    Attributes
    ----------
    digest
        Its identity. Equal recipe, packages and interpreter give an equal digest.
    runner_digest
        Content hash of the runner that is shipped with it.
    python
        Version of its interpreter, such as ``3.12.1``.
    description
        One line for people.
    """

    digest: str
    runner_digest: str
    python: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a room reports of its step: the ``done`` frame, checked.

    Attributes
    ----------
    status
        ``ok``, ``error``, ``interrupted`` or ``limit``.
    reason
        Which limit.
    answers
        What was typed; None for passwords.
    killed
        Names of processes that still ran when the cell ended, and were ended with it.
    """

    status: str
    reason: str = ""
    exit_code: int = 0
    usage: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    user_expressions: dict[str, Any] = field(default_factory=dict)
    payloads: list[dict[str, Any]] = field(default_factory=list)
    truncated: bool = False
    killed: list[str] = field(default_factory=list)
    answers: list[str | None] = field(default_factory=list)

    @property
    def saved(self) -> bool:
        """Whether its variables were saved; else they are as before it."""
        return has_saved(self.state)


def has_saved(state: dict[str, Any]) -> bool:
    """Whether a state report says that variables were saved."""
    return not state.get("error") and state.get("kept") != "before"


class StepHandler(Protocol):
    """Who listens to a running step. Called on the event loop, in the order of the link."""

    def event(self, head: dict[str, Any], body: bytes) -> None:
        """Take one frame: stream, display, result, clear, error, comm, file, overflow, progress."""

    async def input(self, prompt: str, password: bool) -> str:
        """Answer ``input()``; raise any exception to refuse (its text is shown in the cell)."""


class BlobSource(Protocol):
    """Where an engine reads uploads, stored layers and base recipes from, and keeps its recipes."""

    def open(self, digest: str) -> BinaryIO:
        """Open a blob for reading; raises `dagger_kernel.errors.BlobError`."""

    def put(self, data: bytes | BinaryIO) -> str:
        """Store bytes and return their digest."""


Progress = Callable[[str], None]
"""Takes a short text about long work ("building the base: installing pandas", "replaying 12/40")."""

Replayed = Callable[[ChainStep, Outcome, list[tuple[dict[str, Any], bytes]]], None]
"""Called after each repeated cell with its outcome and its frames, so that drift can be found."""


def no_progress(_text: str) -> None:
    """Ignore progress."""


def ignore_replayed(
    _step: ChainStep, _outcome: Outcome, _frames: list[tuple[dict[str, Any], bytes]]
) -> None:
    """Ignore repeated steps."""


class Room(ABC):
    """A fresh container on a state, waiting for one step; used once.

    Made by `Engine.open`. Exactly one of `run` and `close` ends it. A room that got no step
    leaves no layer.
    """

    nonce: str
    """Identity of the one execution; fixed when the room was opened."""

    parent_key: str
    """The state it stands on."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether a step can still be given to it."""

    @abstractmethod
    async def run(self, request: dict[str, Any], handler: StepHandler) -> Outcome:
        """Deliver the step and return its outcome as soon as the runner reports it.

        The layer may not exist yet when this returns: see `commit`.

        Raises
        ------
        RoomLostError
            The room died; ``started`` says whether the step may have run.
        LinkError
            The runner broke the protocol.
        """

    @abstractmethod
    async def commit(self, key: str) -> None:
        """Make the room's file system the layer of ``key``; after `run`. Removes the room."""

    @abstractmethod
    async def discard(self) -> None:
        """After `run`: drop the room and what it wrote (a silent request leaves nothing)."""

    @abstractmethod
    async def ask(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        """Answer ``complete``, ``inspect``, ``is_complete`` or ``variables`` before the step.

        Works in a forked child of the waiting runner: the state is not touched.
        """

    @abstractmethod
    async def interrupt(self) -> None:
        """Interrupt the running step; the second call kills it. No-op when nothing runs."""

    @abstractmethod
    async def send_comm(self, message: dict[str, Any], buffers: bytes = b"") -> None:
        """Hand a comm message to the running step; dropped when nothing runs."""

    @abstractmethod
    async def close(self) -> None:
        """End a room that got no step. Idempotent."""


class Engine(ABC):
    """Makes states and runs steps on them."""

    name: str
    """``local`` or ``dagger``."""

    puts_files_cheaply = False
    """Whether uploads become a state without a container; then `ensure` needs no `prepare` for them."""

    @abstractmethod
    async def prepare(self, progress: Progress = no_progress, digest: str | None = None) -> Base:
        """Make sure a base exists; build it if not (minutes, with progress). Idempotent.

        Called before the first `open` of a chain: with the digest that the chain's steps recorded, or
        None for the base that the settings ask for now. A digest names a recipe in the blob store
        (interpreter, packages, their lock), so that a deleted base can be built again. Cancelling
        stops the build cleanly.

        Raises
        ------
        EngineUnavailableError, EngineConnectionError, EngineVersionError, BaseBuildError
        """

    @abstractmethod
    async def open(
        self,
        chain: Sequence[ChainStep],
        nonce: str,
        *,
        base: Base,
        sandbox_id: str,
        progress: Progress = no_progress,
        replayed: Replayed = ignore_replayed,
    ) -> Room:
        """Open a room on the state after the chain's last step (the base when it is empty).

        Missing states are made first by repeating the chain's steps from the deepest state that
        exists, in order, with progress. Cancelling stops a replay cleanly; what was repeated stays
        cached.

        Raises
        ------
        ReplayError, RoomLostError, EngineConnectionError, BlobError, StorageFullError
        """

    @abstractmethod
    async def ensure(
        self,
        chain: Sequence[ChainStep],
        *,
        base: Base,
        sandbox_id: str,
        progress: Progress = no_progress,
        replayed: Replayed = ignore_replayed,
    ) -> str:
        """Make the state after the chain exist without opening a room; return its key."""

    @abstractmethod
    async def has(self, key: str) -> bool:
        """Whether the state of this key is cached now."""

    @abstractmethod
    async def files(self, key: str, path: str = "", *, recursive: bool = False) -> list[FileInfo]:
        """List a directory of a cached state (``path`` relative to ``/home/sandbox``).

        Links are reported, never followed out of the sandbox.

        Raises
        ------
        SandboxPathError, FileNotFoundError, KeyError (the state is not cached)
        """

    @abstractmethod
    def read(
        self, key: str, path: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Read a regular file of a cached state, in chunks.

        Raises
        ------
        SandboxPathError, FileNotFoundError, KeyError
        """

    async def diff(self, old_key: str, new_key: str) -> dict[str, str]:
        """Return what changed between two cached states: path -> ``new``, ``changed``, ``deleted``."""
        old, new = await asyncio.gather(
            self.files(old_key, recursive=True), self.files(new_key, recursive=True)
        )
        before = {info.path: info for info in old if info.kind != "directory"}
        after = {info.path: info for info in new if info.kind != "directory"}
        changes = dict.fromkeys(before.keys() - after.keys(), "deleted")
        for path, info in after.items():
            if path not in before:
                changes[path] = "new"
            elif before[path] != info:
                changes[path] = "changed"
        return dict(sorted(changes.items()))

    @abstractmethod
    async def export_layer(self, key: str, max_bytes: int) -> bytes | None:
        """Return the layer of a cached state over its parent as an archive, None if it is larger.

        The archive is opaque to callers; a `ChainStep` of kind ``layer`` applies it, on any engine
        (a tar file: OCI layer conventions, ``.wh.`` files for deletions, paths from the root).
        """

    @abstractmethod
    async def evict(self, keys: Sequence[str] | None = None) -> int:
        """Drop cached states (None: all of them); return how many. Never a running room's."""

    @abstractmethod
    async def describe(self) -> dict[str, Any]:
        """Return what `doctor` shows: ``available`` (bool), ``reasons``, ``remedies``, versions, paths.

        Never builds, never connects for longer than a few seconds, never raises.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release everything: rooms, processes, connections. Idempotent."""

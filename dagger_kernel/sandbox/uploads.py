"""Put files into a sandbox: one logged ``upload`` step, one layer, however many files."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from ..errors import SandboxPathError, SettingError
from ..log import LogStore
from ..settings import Settings
from ..steps import Kind, Result, Status, Step, child_key, fresh_nonce, root_key
from .attachments import Attachments
from .names import safe_name, safe_path

FOLDER = "attachments"
PENDING_BASE = ""
"""Of an upload that comes before any cell."""


@dataclass(frozen=True, slots=True)
class Given:
    """A file somebody gives to a sandbox.

    Attributes
    ----------
    name
        As the user knows it.
    content
        Its bytes, or a stream that is read in chunks.
    origin
        Who keeps the file up to date: a later version of the same origin and name takes its place. Empty:
        nobody, a second file of the name gets a name of its own.
    folders
        Whether folders in the name are kept.
    """

    name: str
    content: bytes | BinaryIO
    origin: str = ""
    folders: bool = False


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What became of an upload.

    Attributes
    ----------
    step
        None if nothing was new.
    placed
        Each file's given name and its path below ``/home/sandbox``, in order; of those that were there
        already too.
    skipped
        Given name -> why it was left out.
    """

    step: Step | None
    placed: list[tuple[str, str]]
    skipped: dict[str, str]

    @property
    def paths(self) -> dict[str, str]:
        """Given name -> path."""
        return dict(self.placed)


def upload_files(
    log: LogStore,
    sandbox_id: str,
    files: Iterable[Given],
    settings: Settings,
    *,
    attachments: Attachments | None = None,
    reuse_equal: bool = False,
) -> Uploaded:
    """Append an upload step to a sandbox; no engine is needed, the next cell sees the files.

    The caller holds the sandbox's lock.

    Parameters
    ----------
    attachments
        Kept by a caller that uploads to this sandbox again; else the whole chain is read.
    reuse_equal
        Leave out a file whose name and bytes are there already.

    Raises
    ------
    SandboxNotFoundError, StorageFullError, LogError
    """
    tip = log.tip(sandbox_id)
    there = Attachments() if attachments is None else attachments
    there.follow(log, tip)
    upload = _Upload(log, settings, there, reuse_equal=reuse_equal)
    step = None
    try:
        for file in files:
            upload.add(file)
        if upload.entries:
            step = _append(log, sandbox_id, tip, upload.entries)
            there.passed(step.id)
    except BaseException:
        there.forget()  # it has files that the log may not have
        raise
    return Uploaded(step, upload.placed, upload.skipped)


class _Upload:
    """The files of one step."""

    def __init__(
        self, log: LogStore, settings: Settings, there: Attachments, *, reuse_equal: bool
    ) -> None:
        self._log, self._settings, self._there = log, settings, there
        self._reuse_equal = reuse_equal
        self.entries: list[dict[str, Any]] = []
        self.placed: list[tuple[str, str]] = []
        self.skipped: dict[str, str] = {}

    def add(self, file: Given) -> None:
        """Store one file's bytes and find its place."""
        try:
            given = f"{FOLDER}/{safe_path(file.name) if file.folders else safe_name(file.name)}"
        except SandboxPathError as error:
            self.skipped[file.name] = error.what
            return
        limit = self._settings.file_bytes
        stored = _store(self._log, file.content, limit)
        if stored is None:
            self.skipped[file.name] = f"it is larger than {limit} bytes (DAGGER_KERNEL_FILE_BYTES)"
            return
        blob, size = stored
        equal = self._there.equal(given, blob)
        if equal is not None and (self._reuse_equal or file.origin):
            self.placed.append((file.name, equal))
            return
        path = self._there.kept(file.origin, given) or self._there.free(given)
        entry: dict[str, Any] = {"path": path, "blob": blob, "size": size, "mode": 0o644}
        if path != given:
            entry["given"] = given
        if file.origin:
            entry["origin"] = file.origin
        self.placed.append((file.name, path))
        self.entries.append(entry)
        self._there.take(entry)


def _append(
    log: LogStore, sandbox_id: str, tip: Step | None, entries: list[dict[str, Any]]
) -> Step:
    base, runner = (tip.base_digest, tip.runner_digest) if tip else (PENDING_BASE, PENDING_BASE)
    nonce = fresh_nonce()
    step = log.append(
        Step(
            id=uuid.uuid4().hex,
            sandbox_id=sandbox_id,
            seq=0,
            parent_id=tip.id if tip else None,
            kind=Kind.UPLOAD,
            payload={"files": entries},
            nonce=nonce,
            base_digest=base,
            runner_digest=runner,
            engine="",
            key=child_key(tip.key if tip else root_key(base, runner), nonce),
        )
    )
    log.finish(Result(step_id=step.id, status=Status.OK))
    return step


class _TooLargeError(Exception):
    """A stream goes on past the limit."""


class _Bounded:
    """A stream that fails where it passes a limit, so that a large file is never held in memory."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream, self._limit = stream, limit
        self.size = 0

    def read(self, size: int = -1) -> bytes:
        left = self._limit + 1 - self.size
        data = self._stream.read(left if size < 0 else min(size, left))
        self.size += len(data)
        if self.size > self._limit:
            raise _TooLargeError
        return data


def _store(log: LogStore, content: bytes | BinaryIO, limit: int) -> tuple[str, int] | None:
    """Store bytes up to the limit; return digest and size, or None when there are more."""
    if limit < 0:
        raise SettingError("file_bytes", limit, "a size")
    if isinstance(content, bytes):
        return (log.blobs.put(content), len(content)) if len(content) <= limit else None
    bounded = _Bounded(content, limit)
    try:
        return log.blobs.put(cast(BinaryIO, bounded)), bounded.size
    except _TooLargeError:
        return None

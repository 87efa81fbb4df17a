"""Put files into a sandbox: one logged ``upload`` step, one layer, however many files."""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from ..errors import SandboxPathError, SettingError
from ..log import LogStore
from ..settings import Settings
from ..steps import Kind, Result, Status, Step, child_key, fresh_nonce, root_key

FOLDER = "attachments"
MAX_NAME_BYTES = 200
PENDING_BASE = ""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What became of an upload.

    Attributes
    ----------
    step
        None if nothing was new.
    paths
        Given name -> path below ``/home/sandbox``.
    skipped
        Given name -> why it was left out.
    """

    step: Step | None
    paths: dict[str, str]
    skipped: dict[str, str]


def upload_files(
    log: LogStore,
    sandbox_id: str,
    files: Iterable[tuple[str, bytes | BinaryIO]],
    settings: Settings,
    *,
    reuse_equal: bool = False,
) -> Uploaded:
    """Append an upload step to a sandbox; no engine is needed, the next cell sees the files.

    The caller holds the sandbox's lock.

    Parameters
    ----------
    files
        Names as the user gave them, and bytes or streams (read in chunks).
    reuse_equal
        Leave out a file whose name and bytes are there already.

    Raises
    ------
    SandboxNotFoundError, StorageFullError, LogError
    """
    tip = log.tip(sandbox_id)
    pairs = log.chain(tip.id, outputs=False) if tip else []
    there = {
        item["path"]: item["blob"]
        for step, _ in pairs
        if step.kind is Kind.UPLOAD
        for item in step.payload.get("files", [])
    }
    entries, paths, skipped = [], {}, {}
    for name, content in files:
        try:
            path = f"{FOLDER}/{safe_name(name)}"
        except SandboxPathError as error:
            skipped[name] = error.what
            continue
        digest, size = _store(log, content, settings.file_bytes)
        if digest is None:
            skipped[name] = (
                f"it is larger than {settings.file_bytes} bytes (DAGGER_KERNEL_FILE_BYTES)"
            )
            continue
        if reuse_equal and there.get(path) == digest:
            paths[name] = path
            continue
        path = unique(path, there)
        there[path] = digest
        paths[name] = path
        entries.append({"path": path, "blob": digest, "size": size, "mode": 0o644})
    if not entries:
        return Uploaded(None, paths, skipped)
    first = pairs[0][0] if pairs else None
    nonce = fresh_nonce()
    base, runner = (
        (first.base_digest, first.runner_digest) if first else (PENDING_BASE, PENDING_BASE)
    )
    parent_key = tip.key if tip else root_key(base, runner)
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
            key=child_key(parent_key, nonce),
        )
    )
    log.finish(Result(step_id=step.id, status=Status.OK))
    return Uploaded(step, paths, skipped)


def safe_name(name: str) -> str:
    """Return one readable file name for whatever the user's file was called.

    Folders in the name are dropped, control characters become spaces; what is left must be a name.

    Raises
    ------
    SandboxPathError
        Nothing usable is left.
    """
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in last)
    clean = unicodedata.normalize("NFC", " ".join(clean.split()))
    if clean in ("", ".", ".."):
        raise SandboxPathError(name, "it has no file name")
    stem, dot, suffix = clean.rpartition(".")
    while len(clean.encode()) > MAX_NAME_BYTES:
        stem = (stem or suffix)[:-1]
        clean = f"{stem}{dot}{suffix}" if dot and len(suffix) < 20 else stem
    return clean


def unique(path: str, taken: Iterable[str]) -> str:
    """Return the path, with a readable number before the suffix if it is taken."""
    names = set(taken)
    folder, _, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".") if "." in name[1:] else (name, "", "")
    candidate, number = path, 2
    while candidate in names:
        candidate = f"{folder}/{stem} ({number}){dot}{suffix}"
        number += 1
    return candidate


def _store(log: LogStore, content: bytes | BinaryIO, max_bytes: int) -> tuple[str | None, int]:
    """Store bytes up to the limit; return digest and size, or None when there are more."""
    if max_bytes < 0:
        raise SettingError("file_bytes", max_bytes, "a size")
    data = content if isinstance(content, bytes) else content.read(max_bytes + 1)
    if len(data) > max_bytes:
        return None, len(data)
    return log.blobs.put(data), len(data)

"""Seals: a digest of a layer as it was made, so that one altered on the disk is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from .overlay import is_opaque
from .trees import DEPTH, DIRECTORY, NAME_BYTES

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Seal:
    """Digest of names, kinds, rights, links and contents of a tree; and its bytes on the disk."""

    digest: str
    size: int

    def write(self, path: Path) -> None:
        """Keep it in a file."""
        path.write_text(json.dumps({"digest": self.digest, "bytes": self.size}), "ascii")

    @classmethod
    def read(cls, path: Path) -> Seal | None:
        """Return what `write` kept; None: nothing, or nothing whole."""
        try:
            data = json.loads(path.read_bytes())
            return cls(str(data["digest"]), int(data["bytes"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @classmethod
    def of(cls, tree: Path, deadline: float = float("inf")) -> Seal | None:
        """Return the seal of a tree.

        None if it takes longer than until ``deadline`` (`time.monotonic`), is deeper than `DEPTH`, or vanishes.
        """
        hasher, size = hashlib.sha256(), 0
        try:
            top = os.open(tree, DIRECTORY)
        except OSError:
            return None
        stack = [(top, b"", iter(_entries(top)))]
        try:
            while stack:
                directory, path, names = stack[-1]
                name = next(names, None)
                if name is None:
                    os.close(stack.pop()[0])
                    continue
                _check(deadline)
                info = os.stat(name, dir_fd=directory, follow_symlinks=False)
                size += info.st_blocks * 512 + NAME_BYTES
                place = path + b"/" + os.fsencode(name)
                facts = [place.hex(), info.st_mode, info.st_rdev]
                if stat.S_ISDIR(info.st_mode):
                    if len(stack) >= DEPTH:
                        return None
                    inner = _open(name, directory)
                    if inner is not None:
                        facts.append(is_opaque(inner))
                        stack.append((inner, place, iter(_entries(inner))))
                elif stat.S_ISLNK(info.st_mode):
                    facts.append(os.fsencode(os.readlink(name, dir_fd=directory)).hex())
                elif stat.S_ISREG(info.st_mode):
                    facts += [info.st_size, _content(name, directory, deadline)]
                hasher.update(json.dumps(facts).encode("ascii"))
        except OSError:
            return None
        finally:
            for directory, _, _ in stack:
                os.close(directory)
        return cls(hasher.hexdigest(), size)


def _entries(directory: int) -> list[str]:
    return sorted(os.listdir(directory), key=os.fsencode)


def _open(name: str, directory: int) -> int | None:
    try:
        return os.open(name, DIRECTORY, dir_fd=directory)
    except PermissionError:
        return None  # closed by the cell: an ordinary user cannot look into it now or later


def _content(name: str, directory: int, deadline: float) -> str:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except PermissionError:
        return ""
    hasher = hashlib.sha256()
    with os.fdopen(file, "rb", buffering=0) as stream:
        # A sparse file takes no space, but longer to read than anyone lives.
        while part := stream.read(CHUNK):
            hasher.update(part)
            _check(deadline)
    return hasher.hexdigest()


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError

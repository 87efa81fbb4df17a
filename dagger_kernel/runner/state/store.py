"""Files of the state directory: immutable, content-addressed, written once.

The directory lives in a container layer. Editing a file that came from a lower
layer would copy all of it, so nothing here is ever changed in place: new data
means new files, and ``HEAD`` alone is replaced.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = 4096
OWN_FILE = 1 << 20
"""Blobs of this many bytes get a file of their own; smaller ones share a pack."""

OPEN_FILES = 32
"""Blob files kept open; a notebook of a thousand arrays must not use up the descriptors."""

Slice = tuple[str, int, int]
"""Where bytes live: file name below ``b/``, offset, length."""


def digest(data: bytes | memoryview) -> str:
    """Content address of `data` (SHA-256, the fastest in the standard library)."""
    return hashlib.sha256(data).hexdigest()[:40]


class BlobStore:
    """Reads and writes the blobs of one state directory.

    Small blobs written by one save are gathered in a single *pack* file, since
    creating a file in a container layer costs more than its bytes.

    Parameters
    ----------
    root : str
        The state directory.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.bytes_written = 0
        self._pack: list[bytes | memoryview] = []
        self._pack_size = 0
        self._pack_known: dict[str, Slice] = {}
        self._files: dict[str, int] = {}

    def path(self, name: str) -> str:
        """Path of a blob file."""
        return os.path.join(self.root, "b", name[:2], name)

    def read(self, where: Slice) -> bytes:
        """Read a slice."""
        name, offset, length = where
        data = os.pread(self.descriptor(name), length, offset)
        while len(data) < length:
            more = os.pread(self.descriptor(name), length - len(data), offset + len(data))
            if not more:
                raise OSError(f"state blob {name} is shorter than recorded")
            data += more
        return data

    def descriptor(self, name: str) -> int:
        """Open descriptor of a blob file; the latest few are kept open."""
        found = self._files.get(name)
        if found is None:
            if len(self._files) >= OPEN_FILES:
                os.close(self._files.pop(next(iter(self._files))))
            flags = os.O_RDONLY | os.O_CLOEXEC
            found = self._files[name] = os.open(self.path(name), flags)
        return found

    def put(self, data: bytes | memoryview, *, aligned: bool = False) -> Slice:
        """Store `data` and say where it is (or will be, once packed)."""
        size = len(data)
        if size >= OWN_FILE:
            name = self._write([data])
            return (name, 0, size)
        key = digest(data) if size else "empty"
        known = self._pack_known.get(key)
        if known is not None and not (aligned and known[1] % PAGE):
            return known
        if aligned and self._pack_size % PAGE:
            padding = PAGE - self._pack_size % PAGE
            self._pack.append(bytes(padding))
            self._pack_size += padding
        # The pack has no name before it is complete: "" is replaced by `flush`.
        where = self._pack_known[key] = ("", self._pack_size, size)
        self._pack.append(bytes(data))
        self._pack_size += size
        return where

    def flush(self) -> str:
        """Write the pending pack; give its name ("" when there was nothing)."""
        if not self._pack:
            return ""
        name = self._write(self._pack)
        self._pack, self._pack_size, self._pack_known = [], 0, {}
        return name

    def _write(self, parts: Iterable[bytes | memoryview]) -> str:
        """Write one content-addressed file, unless it is there already."""
        views = [memoryview(part).cast("B") for part in parts]
        hasher = hashlib.sha256()
        for view in views:
            hasher.update(view)
        name = hasher.hexdigest()[:40]
        target = self.path(name)
        if os.path.exists(target):
            return name
        os.makedirs(os.path.dirname(target), exist_ok=True)
        temporary = f"{target}.new-{os.getpid()}"
        with open(temporary, "wb", buffering=0) as file:
            for view in views:
                rest = view
                while len(rest):
                    rest = rest[file.write(rest) :]
                self.bytes_written += len(view)
        os.rename(temporary, target)
        return name

    def write_manifest(self, name: str, data: bytes) -> None:
        """Write a manifest file and point ``HEAD`` at it."""
        folder = os.path.join(self.root, "m")
        os.makedirs(folder, exist_ok=True)
        for path, content in (
            (os.path.join(folder, name), data),
            (os.path.join(self.root, "HEAD"), name.encode()),
        ):
            temporary = f"{path}.new-{os.getpid()}"
            with open(temporary, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
            self.bytes_written += len(content)

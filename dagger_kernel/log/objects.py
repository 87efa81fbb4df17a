"""The blob store behind fsspec: an object store in a deployment."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import fsspec

from ..errors import BlobError, DaggerKernelError, LogUnavailableError
from .blobs import CHUNK_BYTES, DIGEST, BlobStore, check_digest
from .faults import from_os_error

_SPOOL_BYTES = 16 << 20


class FsspecBlobStore(BlobStore):
    """The blob store behind fsspec: an object store in a deployment.

    Parameters
    ----------
    url
        fsspec URL of the folder, such as ``s3://bucket/blobs``.
    """

    def __init__(self, url: str) -> None:
        super().__init__(Path())
        self._url = url
        try:
            self._fs, folder = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise LogUnavailableError(f"The blob store {url} cannot be used: {error}.") from None
        self._folder = str(folder).rstrip("/")

    @property
    def location(self) -> str:
        """The URL."""
        return self._url

    def open(self, digest: str) -> BinaryIO:
        """Fetch a blob, check it, and return it as a (spooled) local file."""
        check_digest(digest)
        spool = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES))  # noqa: SIM115
        hasher = hashlib.sha256()
        try:
            with _translated(digest), self._fs.open(self._key(digest), "rb") as source:
                while chunk := source.read(CHUNK_BYTES):
                    hasher.update(chunk)
                    spool.write(chunk)
            if hasher.hexdigest() != digest:
                raise BlobError("A stored file is damaged", digest)
        except BaseException:
            spool.close()
            raise
        spool.seek(0)
        return spool

    def size(self, digest: str) -> int:
        """Return a blob's size in bytes."""
        check_digest(digest)
        with _translated(digest):
            return int(self._fs.size(self._key(digest)))

    def delete(self, digest: str) -> bool:
        """Delete a blob; return whether it was there."""
        check_digest(digest)
        if not self.has(digest):
            return False
        with _translated(digest):
            self._fs.rm_file(self._key(digest))
        return True

    def digests(self) -> Iterator[tuple[str, float]]:
        """Yield each blob's digest and the time it was last stored."""
        for path, info in self._fs.find(self._folder, detail=True).items():
            name = path.rpartition("/")[2]
            if DIGEST.fullmatch(name):
                yield name, _modified(info)

    def delete_older(self, digest: str, before: float) -> int | None:
        """Delete a blob unless it was stored again since a time (the store's own clock and times)."""
        check_digest(digest)
        key = self._key(digest)
        try:
            with _translated(digest):
                info = self._fs.info(key)
                if _modified(info) >= before:
                    return None
                self._fs.rm_file(key)
        except BlobError:
            return None
        return int(info["size"] or 0)

    def sweep(self, before: float) -> None:
        """Delete what dead writers left behind: nothing, an object store shows whole objects only."""

    def _put(self, stream: BinaryIO) -> str:
        # Object stores show a key only when it is complete, so what remains is to know the key
        # before sending: the bytes are spooled while they are hashed.
        hasher = hashlib.sha256()
        with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
            while chunk := stream.read(CHUNK_BYTES):
                hasher.update(chunk)
                spool.write(chunk)
            digest = hasher.hexdigest()
            spool.seek(0)
            key = self._key(digest)
            with _translated(digest):
                self._fs.makedirs(key.rpartition("/")[0], exist_ok=True)
                with self._fs.open(key, "wb") as target:
                    while chunk := spool.read(CHUNK_BYTES):
                        target.write(chunk)
        return digest

    def _key(self, digest: str) -> str:
        return f"{self._folder}/{digest[:2]}/{digest[2:4]}/{digest}"


@contextmanager
def _translated(digest: str) -> Iterator[None]:
    """Raise the package's errors for whatever an fsspec implementation raises."""
    try:
        yield
    except DaggerKernelError:
        raise
    except FileNotFoundError:
        raise BlobError("A stored file is missing", digest) from None
    except OSError as error:
        raise from_os_error(error) from error
    except Exception as error:
        raise LogUnavailableError(f"The blob store does not answer: {error}.") from error


def _modified(info: dict[str, Any]) -> float:
    for name in ("mtime", "LastModified", "last_modified", "created", "updated"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
    return float("inf")  # unknown age: never old enough to be collected

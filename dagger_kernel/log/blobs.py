"""The blob store: bytes by their SHA-256, in a directory or behind fsspec."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..errors import BlobError, LogUnavailableError, StorageFullError
from ..settings import Settings
from .faults import from_os_error

_CHUNK = 1 << 20
_SPOOL = 16 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")


class BlobStore:
    """Bytes by their digest; what is stored under a digest never changes.

    This is the store in a directory, the default: two levels of fan-out, 0600 files in 0700
    directories, each written beside its place, synchronised and renamed, so that a reader never sees
    half a blob and a row never refers to one that a power cut takes away. `FsspecBlobStore` is the same
    on anything fsspec reaches. Several threads and processes may use one store at the same time.

    Parameters
    ----------
    root
        The directory; made when first needed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def location(self) -> str:
        """Where the blobs are, for the log's ``blob`` rows and for people."""
        return str(self.root)

    def put(self, data: bytes | BinaryIO) -> str:
        """Store bytes, or a stream up to its end; return the digest (64 hexadecimal digits).

        Storing what is there already costs reading it: a damaged blob is thereby replaced.

        Raises
        ------
        StorageFullError
            No space left; nothing is stored.
        LogUnavailableError
            The store cannot be written.
        """
        stream = io.BytesIO(data) if isinstance(data, (bytes, bytearray, memoryview)) else data
        try:
            return self._put(stream)
        except OSError as error:
            raise from_os_error(error) from error

    def open(self, digest: str) -> BinaryIO:
        """Open a blob for reading, after checking that its bytes have its digest.

        Raises
        ------
        BlobError
            The blob is missing or damaged.
        """
        _check(digest)
        try:
            stream = open(self._path(digest), "rb")  # noqa: SIM115 - handed to the caller
        except FileNotFoundError:
            raise BlobError("A stored file is missing", digest) from None
        except OSError as error:
            raise from_os_error(error) from error
        try:
            if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                raise BlobError("A stored file is damaged", digest)
            stream.seek(0)
        except OSError as error:
            stream.close()
            raise BlobError(f"A stored file cannot be read: {error.strerror}", digest) from error
        except BlobError:
            stream.close()
            raise
        return stream

    def read(self, digest: str) -> bytes:
        """Return a blob's bytes; raises like `open`."""
        with self.open(digest) as stream:
            return stream.read()

    def size(self, digest: str) -> int:
        """Return a blob's size in bytes, without reading it.

        Raises
        ------
        BlobError
            The blob is missing.
        """
        _check(digest)
        try:
            return os.stat(self._path(digest)).st_size
        except FileNotFoundError:
            raise BlobError("A stored file is missing", digest) from None
        except OSError as error:
            raise from_os_error(error) from error

    def has(self, digest: str) -> bool:
        """Whether the blob is there (its bytes are not checked)."""
        try:
            self.size(digest)
        except BlobError:
            return False
        return True

    def delete(self, digest: str) -> bool:
        """Delete a blob; return whether it was there. Only purge and collection call this."""
        _check(digest)
        try:
            os.unlink(self._path(digest))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise from_os_error(error) from error
        return True

    def delete_older(self, digest: str, before: float) -> int | None:
        """Delete a blob unless it was stored again since a time; return its bytes, None: it stays.

        For the collector: `put` holds a lock against it, so a blob that is just stored again stays.
        """
        path = self._path(digest)
        try:
            with self._collecting(fcntl.LOCK_EX):
                status = path.stat()
                if status.st_mtime >= before:
                    return None
                path.unlink()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_os_error(error) from error
        return status.st_size

    def sweep(self, before: float) -> None:
        """Delete what writers that died before a time left behind."""
        for path in (self.root / "incoming").glob("*"):
            try:
                if path.stat().st_mtime < before:
                    path.unlink()
            except OSError:
                continue  # its writer was faster

    def digests(self) -> Iterator[tuple[str, float]]:
        """Yield each blob's digest and the time it was last stored (seconds since the epoch)."""
        for path in self.root.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*"):
            if _DIGEST.fullmatch(path.name):
                try:
                    yield path.name, path.stat().st_mtime
                except FileNotFoundError:
                    continue  # deleted meanwhile

    def _path(self, digest: str) -> Path:
        return self.root / digest[:2] / digest[2:4] / digest

    @contextmanager
    def _collecting(self, mode: int) -> Iterator[None]:
        """Hold the collector's lock: shared to store, exclusive to delete."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self.root / "collect.lock", flags, 0o600)
        try:
            fcntl.flock(descriptor, mode)
            yield
        finally:
            os.close(descriptor)

    def _put(self, stream: BinaryIO) -> str:
        incoming = self.root / "incoming"
        incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = incoming / secrets.token_hex(16)
        hasher = hashlib.sha256()
        try:
            descriptor = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
            with os.fdopen(descriptor, "wb") as file:
                while chunk := stream.read(_CHUNK):
                    hasher.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fdatasync(file.fileno())
            digest = hasher.hexdigest()
            final = self._path(digest)
            fresh = not final.parent.exists()
            final.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Replaces an equal blob, or a damaged one; either way the file is new for the collector.
            with self._collecting(fcntl.LOCK_SH):
                os.replace(temporary, final)
            _sync_directory(final.parent)
            if fresh:
                _sync_directory(final.parent.parent)
                _sync_directory(self.root)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return digest


class FsspecBlobStore(BlobStore):
    """The blob store behind fsspec: an object store in a deployment.

    Parameters
    ----------
    url
        fsspec URL of the folder, such as ``s3://bucket/blobs``.
    """

    def __init__(self, url: str) -> None:
        import fsspec

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
        _check(digest)
        spool = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=_SPOOL))  # noqa: SIM115
        hasher = hashlib.sha256()
        try:
            with self._guarded(digest), self._fs.open(self._key(digest), "rb") as source:
                while chunk := source.read(_CHUNK):
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
        _check(digest)
        with self._guarded(digest):
            return int(self._fs.size(self._key(digest)))

    def delete(self, digest: str) -> bool:
        """Delete a blob; return whether it was there."""
        if not self.has(digest):
            return False
        with self._guarded(digest):
            self._fs.rm_file(self._key(digest))
        return True

    def digests(self) -> Iterator[tuple[str, float]]:
        """Yield each blob's digest and the time it was last stored."""
        for path, info in self._fs.find(self._folder, detail=True).items():
            name = path.rpartition("/")[2]
            if _DIGEST.fullmatch(name):
                yield name, _modified(info)

    def delete_older(self, digest: str, before: float) -> int | None:
        """Delete a blob unless it was stored again since a time (the store's own clock and times)."""
        _check(digest)
        key = self._key(digest)
        try:
            with self._guarded(digest):
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
        with tempfile.SpooledTemporaryFile(max_size=_SPOOL) as spool:
            while chunk := stream.read(_CHUNK):
                hasher.update(chunk)
                spool.write(chunk)
            digest = hasher.hexdigest()
            spool.seek(0)
            key = self._key(digest)
            with self._guarded(digest):
                self._fs.makedirs(key.rpartition("/")[0], exist_ok=True)
                with self._fs.open(key, "wb") as target:
                    while chunk := spool.read(_CHUNK):
                        target.write(chunk)
        return digest

    def _key(self, digest: str) -> str:
        return f"{self._folder}/{digest[:2]}/{digest[2:4]}/{digest}"

    def _guarded(self, digest: str) -> _Guard:
        return _Guard(digest)


class _Guard:
    """Raises the package's errors for whatever an fsspec implementation raises."""

    def __init__(self, digest: str) -> None:
        self._digest = digest

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Translate."""
        if isinstance(error, FileNotFoundError):
            raise BlobError("A stored file is missing", self._digest) from None
        if isinstance(error, OSError):
            raise from_os_error(error) from error
        if isinstance(error, Exception) and not isinstance(error, (BlobError, StorageFullError)):
            raise LogUnavailableError(f"The blob store does not answer: {error}.") from error


def open_blobs(settings: Settings) -> BlobStore:
    """Return the blob store that the settings name; nothing is opened yet."""
    if settings.blob_url:
        return FsspecBlobStore(settings.blob_url)
    return BlobStore(settings.data_path / "blobs")


def _check(digest: str) -> None:
    # Digests come back from sandboxes and clients; one with slashes would be a path.
    if not _DIGEST.fullmatch(digest):
        raise BlobError("This is not the name of a stored file", digest[:80])


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _modified(info: dict[str, Any]) -> float:
    for name in ("mtime", "LastModified", "last_modified", "created", "updated"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
    return float("inf")  # unknown age: never old enough to be collected

"""The blob store: bytes by their SHA-256, in a directory or behind fsspec."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import BlobError
from ..settings import Settings
from .faults import from_os_error
from .private import make_private_directory

CHUNK_BYTES = 1 << 20
DIGEST = re.compile(r"[0-9a-f]{64}")


class BlobStore:
    """Bytes by their digest; what is stored under a digest never changes.

    This is the store in a directory, the default: two levels of fan-out, 0600 files in 0700
    directories, each written beside its place, synchronised and renamed, so that a reader never sees
    half a blob and a row never refers to one that a power cut takes away. `dagger_kernel.log.objects` is the
    same on anything fsspec reaches. Several threads and processes may use one store at the same time.

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
        check_digest(digest)
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
        check_digest(digest)
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
        check_digest(digest)
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
            if DIGEST.fullmatch(path.name):
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
        make_private_directory(incoming)
        temporary = incoming / secrets.token_hex(16)
        hasher = hashlib.sha256()
        try:
            descriptor = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
            with os.fdopen(descriptor, "wb") as file:
                while chunk := stream.read(CHUNK_BYTES):
                    hasher.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fdatasync(file.fileno())
            digest = hasher.hexdigest()
            final = self._path(digest)
            fresh = not final.parent.exists()
            make_private_directory(final.parent)
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


def open_blobs(settings: Settings) -> BlobStore:
    """Return the blob store that the settings name; nothing is opened yet."""
    if settings.blob_url:
        from .objects import FsspecBlobStore  # fsspec costs 40 ms; most logs need a directory only

        return FsspecBlobStore(settings.blob_url)
    return BlobStore(settings.data_path / "blobs")


def check_digest(digest: str) -> None:
    """Raise `BlobError` for what is no digest."""
    # Digests come back from sandboxes and clients; one with slashes would be a path.
    if not DIGEST.fullmatch(digest):
        raise BlobError("This is not the name of a stored file", digest[:80])


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

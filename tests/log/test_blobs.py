import hashlib
import io
import os
import threading
import time

import pytest

from dagger_kernel.errors import BlobError, LogUnavailableError, StorageFullError
from dagger_kernel.log.blobs import BlobStore, open_blobs
from dagger_kernel.settings import Settings


@pytest.fixture(params=["directory", "file://", "memory://"])
def blobs(request, tmp_path):
    url = {"directory": "", "file://": f"file://{tmp_path}/remote", "memory://": "memory://blobs"}
    store = open_blobs(Settings(data_dir=str(tmp_path), blob_url=url[request.param]))
    yield store
    if request.param == "memory://":
        store._fs.store.clear()


def damage(store, digest, data):
    if hasattr(store, "_fs"):
        store._fs.pipe_file(store._key(digest), data)
    else:
        store._path(digest).write_bytes(data)


@pytest.mark.parametrize("data", [b"", b"a", b"\x00\xff" * 70000, os.urandom(3 << 20)])
def test_bytes_come_back_by_their_digest(blobs, data):
    digest = blobs.put(data)
    assert digest == hashlib.sha256(data).hexdigest()
    with blobs.open(digest) as stream:
        assert stream.read() == data
    assert blobs.read(digest) == data
    assert blobs.size(digest) == len(data)
    assert blobs.has(digest)
    assert blobs.put(io.BytesIO(data)) == digest
    assert [one for one, _ in blobs.digests()] == [digest]


def test_missing_and_damaged_blobs_are_refused(blobs):
    digest = blobs.put(b"right")
    damage(blobs, digest, b"wrong")
    with pytest.raises(BlobError, match="damaged") as caught:
        blobs.open(digest)
    assert caught.value.digest == digest
    assert blobs.put(b"right") == digest  # storing it again mends it
    assert blobs.read(digest) == b"right"
    assert blobs.delete(digest)
    assert not blobs.delete(digest)
    assert not blobs.has(digest)
    for use in (blobs.open, blobs.size, blobs.read):
        with pytest.raises(BlobError, match="missing"):
            use(digest)


@pytest.mark.parametrize(
    "name", ["", "../../etc/passwd", "a" * 63, "A" * 64, "/" * 64, "0" * 65, "\x00"]
)
def test_what_is_no_digest_is_no_path(blobs, name):
    for use in (blobs.open, blobs.size, blobs.delete, blobs.read):
        with pytest.raises(BlobError):
            use(name)
    assert not blobs.has(name)


def test_the_collector_takes_old_blobs_only(blobs):
    digest = blobs.put(b"x" * 10)
    assert blobs.delete_older(digest, time.time() - 60) is None
    assert blobs.has(digest)
    assert blobs.delete_older(digest, time.time() + 60) == 10
    assert blobs.delete_older(digest, time.time() + 60) is None
    blobs.sweep(time.time() + 60)


class Broken(io.RawIOBase):
    def __init__(self):
        self.left = 2

    def read(self, _size=-1):
        self.left -= 1
        if self.left < 0:
            raise OSError(5, "Input/output error")
        return b"x" * 1000


def test_a_broken_source_leaves_nothing(tmp_path):
    store = BlobStore(tmp_path / "blobs")
    with pytest.raises(LogUnavailableError):
        store.put(Broken())
    assert list(store.digests()) == []
    assert list((tmp_path / "blobs/incoming").iterdir()) == []


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path, monkeypatch):
    store = BlobStore(tmp_path / "blobs")
    store.put(b"before")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(StorageFullError):
        store.put(b"after")
    assert len(list(store.digests())) == 1
    assert list((tmp_path / "blobs/incoming").iterdir()) == []


def test_what_a_dead_writer_left_is_swept(tmp_path):
    store = BlobStore(tmp_path / "blobs")
    store.put(b"x")
    left = tmp_path / "blobs/incoming/left"
    left.write_bytes(b"half")
    store.sweep(time.time() - 60)
    assert left.exists()
    store.sweep(time.time() + 60)
    assert not left.exists()


def test_writers_of_the_same_bytes_do_not_hinder_each_other(tmp_path):
    store = BlobStore(tmp_path / "blobs")
    data = os.urandom(100_000)
    found, errors = [], []

    def work():
        try:
            for _ in range(20):
                digest = store.put(data)
                found.append(store.read(digest) == data)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert found == [True] * 80


def test_a_blob_stored_while_it_is_collected_is_there(tmp_path):
    """Nobody reads a digest as stored and then finds it collected as old."""
    store = BlobStore(tmp_path / "blobs")
    digest = store.put(b"x")
    stop = threading.Event()

    def collect():
        while not stop.is_set():
            store.delete_older(digest, time.time() - 30)

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        for _ in range(200):
            if store.has(digest):
                os.utime(store._path(digest), (1, 1))
            store.put(b"x")
            assert store.has(digest)
    finally:
        stop.set()
        thread.join()


def test_an_unknown_store_is_told(tmp_path):
    for url in ("nonsense://bucket/x", "s3://bucket/x"):
        try:
            import s3fs  # noqa: F401
        except ImportError:
            with pytest.raises(LogUnavailableError, match="cannot be used"):
                open_blobs(Settings(data_dir=str(tmp_path), blob_url=url))

"""Copy-on-write mappings of saved buffers, and which pages were written since.

A saved buffer is mapped privately: reading costs nothing until a page is
touched, writing copies one page, and the file never changes. The kernel's page
table then says exactly which pages were written, so finding a changed element
in a gigabyte takes a millisecond and no hashing.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import TYPE_CHECKING, Any

from .store import PAGE

if TYPE_CHECKING:
    from .manifest import Buffer
    from .store import BlobStore

GRAIN = 16 * PAGE
"""Written pages are saved in runs of this many bytes, so that extents stay few."""

MAX_EXTENTS = 256

# Bits 63 (present), 62 (swapped) and 61 (file page) live in an entry's top byte.
# A private file page is clean while it is absent or still the file's own page.
_WRITTEN = bytes(1 if (byte & 0xE0) in (0x80, 0x40) else 0 for byte in range(256))


class _Libc:
    """The few C calls mmap objects do not offer."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self.mmap = library.mmap
        self.mmap.restype = ctypes.c_void_p
        self.mmap.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_long,
        ]
        self.munmap = library.munmap
        self.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.memcmp = library.memcmp
        self.memcmp.restype = ctypes.c_int
        self.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def address_of(view: memoryview) -> int:
    """Address of the first byte of a buffer, writable or not."""
    if not view.nbytes:
        return 0
    record = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(
        ctypes.py_object(view), ctypes.byref(record), ctypes.c_int(0)
    )
    try:
        return int(record.buf or 0)
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(record))


class _PyBuffer(ctypes.Structure):
    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


class Memory:
    """The mappings of this process.

    Parameters
    ----------
    store : BlobStore
        Where the buffers' files are.
    """

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._libc = _Libc()
        self._known: dict[int, Buffer] = {}
        self._copies: dict[tuple[int, int], Buffer] = {}
        self._pagemap: bool | None = None

    def map(self, buffer: Buffer) -> Any:
        """Map a saved buffer privately; the result is a writable buffer object.

        A ctypes array over the mapping is returned, as an ``mmap`` object would hold
        one file descriptor each and a notebook may hold thousands of arrays.
        """
        if not buffer.length:
            return bytearray()
        address = self._map_pages(0, buffer.length, buffer.file, buffer.offset)
        for start, length, file, offset in buffer.extents:
            self._map_pages(address + start, length, file, offset)
        segment = (ctypes.c_ubyte * buffer.length).from_address(address)
        self._known[address] = buffer
        weakref.finalize(segment, self._unmap, address, buffer.length).atexit = False
        return segment

    def read(self, buffer: Buffer) -> Any:
        """Read a small saved buffer into memory of its own."""
        data = bytearray(self._store.read((buffer.file, buffer.offset, buffer.length)))
        # Not a plain bytearray: the pickler would write that into the pickle itself.
        copy = (ctypes.c_ubyte * buffer.length).from_buffer(data)
        self._copies[address_of(memoryview(copy)), buffer.length] = buffer
        return copy

    def unchanged_copy(self, view: memoryview) -> Buffer | None:
        """The saved buffer which a block of memory was read from, if they are still equal."""
        buffer = self._copies.get((address_of(view), view.nbytes))
        if buffer is None:
            return None
        same = self._store.read((buffer.file, buffer.offset, buffer.length)) == view
        return buffer if same else None

    def _map_pages(self, address: int, length: int, file: str, offset: int) -> int:
        """Map part of a file privately; at `address`, over what is there, unless it is 0."""
        flags = mmap.MAP_PRIVATE | (0x10 if address else 0)  # MAP_FIXED
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        descriptor = self._store.descriptor(file)
        if os.fstat(descriptor).st_size < offset + length:
            raise OSError(f"state blob {file} is shorter than recorded")
        whole = -(-length // PAGE) * PAGE
        found = self._libc.mmap(address, whole, protection, flags, descriptor, offset)
        if found in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "cannot map a state buffer")
        return int(found)

    def _unmap(self, address: int, length: int) -> None:
        self._known.pop(address, None)
        self._libc.munmap(address, length)

    def known(self, view: memoryview) -> Buffer | None:
        """The saved buffer a memory block was mapped from, if it is all of it."""
        address = address_of(view)
        found = self._known.get(address)
        return found if found and found.length == view.nbytes else None

    def written(self, view: memoryview, buffer: Buffer) -> list[tuple[int, int]]:
        """Ranges (start, length) written since mapping; grain-aligned, merged."""
        address = address_of(view)
        if self._pagemap is None:
            self._pagemap = self._pagemap_works()
        if self._pagemap:
            try:
                return self._written_pages(address, view.nbytes)
            except OSError:
                self._pagemap = False
        return self._compare(view, buffer)

    def _written_pages(self, address: int, length: int) -> list[tuple[int, int]]:
        first = address // PAGE
        count = (address + length + PAGE - 1) // PAGE - first
        descriptor = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        try:
            flags = bytearray()
            while len(flags) < count:
                want = min(count - len(flags), 1 << 16) * 8
                raw = os.pread(descriptor, want, (first + len(flags)) * 8)
                if not raw:
                    raise OSError("pagemap ended early")
                flags += raw[7::8].translate(_WRITTEN)
        finally:
            os.close(descriptor)
        grain = GRAIN // PAGE
        ranges: list[tuple[int, int]] = []
        position = flags.find(1)
        while position >= 0:
            start = position // grain * grain
            stop = start + grain
            if ranges and ranges[-1][1] >= start:
                ranges[-1] = (ranges[-1][0], stop)
            else:
                ranges.append((start, stop))
            position = flags.find(1, stop)
        return [(s * PAGE, min(e * PAGE, length) - s * PAGE) for s, e in ranges]

    def _compare(self, view: memoryview, buffer: Buffer) -> list[tuple[int, int]]:
        """Find written ranges by comparing with the files, where pagemap is hidden."""
        fresh = Memory(self._store).map(buffer)
        mine, theirs = address_of(view), address_of(memoryview(fresh))
        ranges: list[tuple[int, int]] = []
        for start in range(0, view.nbytes, GRAIN):
            size = min(GRAIN, view.nbytes - start)
            if self._libc.memcmp(mine + start, theirs + start, size):
                if ranges and sum(ranges[-1]) == start:
                    ranges[-1] = (ranges[-1][0], ranges[-1][1] + size)
                else:
                    ranges.append((start, size))
        return ranges

    def _pagemap_works(self) -> bool:
        """Write to a page of a private mapping and see whether pagemap tells."""
        try:
            descriptor = os.memfd_create("probe")
        except OSError:
            return False
        try:
            os.pwrite(descriptor, b"x" * (2 * PAGE), 0)
            probe = mmap.mmap(
                descriptor,
                2 * PAGE,
                flags=mmap.MAP_PRIVATE,
                prot=mmap.PROT_READ | mmap.PROT_WRITE,
            )
            assert probe[0]
            assert probe[PAGE]
            probe[PAGE] = 1
            address = address_of(memoryview(probe))
            first = self._written_pages(address, PAGE)
            second = self._written_pages(address + PAGE, PAGE)
            return not first and bool(second)
        except OSError:
            return False
        finally:
            os.close(descriptor)

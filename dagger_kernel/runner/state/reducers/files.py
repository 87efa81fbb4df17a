"""Open files come back open, where they stood, and are never truncated."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import weakref
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..lost import LostObject
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler

_STANDARD = ("stdin", "stdout", "stderr")


def _standard(value: Any) -> str | None:
    for name in _STANDARD:
        for candidate in (name, f"__{name}__"):
            stream = getattr(sys, candidate, None)
            if stream is value:
                return candidate
            if stream is not None and getattr(stream, "buffer", None) is value:
                return f"{candidate}.buffer"
    return None


@reduces(io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)
def reduce_file(pickler: StatePickler, value: Any) -> Any:
    """Save a file as its path, mode and position."""
    standard = _standard(value)
    if standard is not None:
        pickler.by_reference.add(id(value))
        return (rebuild_standard, (standard,))
    kind = type(value).__name__
    text = _text_options(value) if isinstance(value, io.TextIOWrapper) else None
    raw = _raw(value)
    if value.closed:
        return (rebuild_closed, (kind, _name(value), _mode(value), text))
    if raw is None:
        raise CannotPersistError("it is not an open file of this machine")
    name = raw.name
    writable = value.writable()
    if writable:
        value.flush()
    if not isinstance(name, str | bytes):
        raise CannotPersistError("it has no path: it was opened by number or is a pipe")
    status = os.fstat(raw.fileno())
    path = os.path.abspath(os.fsdecode(name))
    try:
        current = os.stat(path)
    except OSError:
        raise CannotPersistError("its file was removed") from None
    if (current.st_dev, current.st_ino) != (status.st_dev, status.st_ino):
        raise CannotPersistError("its path names another file by now")
    if os.path.isfile(path):
        position: Any = _position(value)
    elif path in (os.devnull, "/dev/zero", "/dev/urandom", "/dev/random"):
        position = None
    else:
        raise CannotPersistError("it is not a regular file")
    buffering = 0 if kind == "FileIO" else -1
    arguments = (kind, path, name, _mode(value), raw.mode, position, text, buffering, pickler.name,
                 pickler.registry.cell)  # fmt: skip
    return (rebuild_file, arguments)


def _text_options(value: io.TextIOWrapper) -> tuple[Any, ...]:
    newline = getattr(value, "_CHUNK_SIZE", None) and None
    translated = getattr(value, "newlines", None)
    del translated
    try:
        return (value.encoding, value.errors, newline, value.line_buffering, value.write_through)
    except ValueError:
        return ("utf-8", "strict", newline, False, False)


def _raw(value: Any) -> Any:
    """The FileIO at the bottom of a stack of streams, or None."""
    try:
        while not isinstance(value, io.FileIO):
            value = value.buffer if isinstance(value, io.TextIOWrapper) else value.raw
    except (AttributeError, ValueError):
        return None
    return value


def _name(value: Any) -> Any:
    try:
        return value.name
    except (AttributeError, ValueError):
        return None


def _mode(value: Any) -> Any:
    try:
        return value.mode
    except (AttributeError, ValueError):
        return None


def _position(value: Any) -> Any:
    """Where a file stands; a text file half read by a loop is counted in characters."""
    try:
        return value.tell()
    except OSError:
        # Iteration switches `tell` off. The rest of the text tells how much was consumed.
        rest = value.read()
        value.seek(0)
        whole = value.read()
        consumed = len(whole) - len(rest)
        value.seek(0)
        value.read(consumed)
        return value.tell()


@rebuilder
def rebuild_standard(name: str) -> Any:
    """Give the cell's own standard stream."""
    found: Any = sys
    for part in name.split("."):
        found = getattr(found, part)
    return found


@rebuilder
def rebuild_file(
    kind: str, path: str, name: Any, mode: str, raw_mode: str, position: Any, text: Any,
    buffering: int, variable: str, cell: int,
) -> Any:  # fmt: skip
    """Open a file again where it stood; what was opened to be emptied is not emptied."""
    binary = {"wb": "rb+", "xb": "rb+", "xb+": "rb+", "rb+": "rb+", "wb+": "rb+"}.get(
        raw_mode, raw_mode
    )
    del buffering
    try:
        raw = io.FileIO(path, binary.replace("b", ""))
    except OSError as error:
        return LostObject(
            variable, f"_io.{kind}", f"its file cannot be opened: {error.strerror}", cell
        )
    if raw_mode in ("wb", "xb"):
        # Reading was not allowed before; an append-free way to say so is a new descriptor.
        raw.close()
        raw = io.FileIO(os.open(path, os.O_WRONLY | os.O_CLOEXEC), "w", closefd=True)
    raw.name = name
    stack = _stack(raw, kind, mode, text)
    if position is not None:
        stack.seek(position)
    return stack


def _stack(raw: Any, kind: str, mode: Any, text: Any) -> Any:
    if kind == "FileIO":
        return raw
    if raw.readable() and raw.writable():
        buffer: Any = io.BufferedRandom(raw)
    elif raw.readable():
        buffer = io.BufferedReader(raw)
    else:
        buffer = io.BufferedWriter(raw)
    if kind != "TextIOWrapper":
        return buffer
    encoding, errors, newline, line_buffering, write_through = text
    made = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering, write_through)
    made.mode = mode  # type: ignore[misc]
    return made


@rebuilder
def rebuild_closed(kind: str, name: Any, mode: Any, text: Any) -> Any:
    """Make a file which is closed already."""
    flag = "r"
    if kind == "BufferedWriter" or (
        isinstance(mode, str) and mode[:1] in "wax" and "+" not in mode
    ):
        flag = "w"
    elif kind == "BufferedRandom":
        flag = "r+"
    raw = io.FileIO(os.devnull, flag)
    if name is not None:
        raw.name = name
    made = _stack(raw, kind, mode, text)
    made.close()
    return made


@reduces("tempfile._TemporaryFileWrapper")
def reduce_temporary(_pickler: StatePickler, value: Any) -> Any:
    """Save a named temporary file; it is not removed when this process ends."""
    closer = value._closer
    # Since 3.12 the closer alone knows; what it knew is kept, as it may be asked twice.
    delete = vars(value).get("delete", vars(closer).setdefault("_delete", closer.delete))
    closer.delete = False
    if hasattr(closer, "close_called"):
        closer.close_called = True
    options: tuple[Any, ...] = (delete,)
    if hasattr(closer, "delete_on_close"):
        options += (closer.delete_on_close,)
    return (rebuild_temporary, (value.file, value.name, *options))


@rebuilder
def rebuild_temporary(file: Any, name: str, *options: bool) -> Any:
    """Make a named temporary file."""
    if type(file) is LostObject:
        return file
    return tempfile._TemporaryFileWrapper(file, name, *options)


@reduces("tempfile.TemporaryDirectory")
def reduce_temporary_directory(_pickler: StatePickler, value: Any) -> Any:
    """Save a temporary directory; it is not removed when this process ends."""
    alive = value._finalizer.alive
    if alive:
        value._finalizer.atexit = False
    options = {k: v for k, v in vars(value).items() if k not in ("name", "_finalizer")}
    return (rebuild_temporary_directory, (type(value), value.name, alive, options))


@rebuilder
def rebuild_temporary_directory(cls: Any, name: str, alive: bool, options: dict[str, Any]) -> Any:
    """Make a temporary directory object for a directory which exists."""
    made = cls.__new__(cls)
    made.name = name
    vars(made).update(options)
    finalizer: Any = weakref.finalize(
        made, cls._cleanup, name, f"Implicitly cleaning up {made!r}", **_cleanup_options(options)
    )
    finalizer.atexit = False
    made._finalizer = finalizer
    if not alive:
        finalizer.detach()
    return made


def _cleanup_options(options: dict[str, Any]) -> dict[str, Any]:
    found = {}
    if "_ignore_cleanup_errors" in options:
        found["ignore_errors"] = options["_ignore_cleanup_errors"]
    if "_delete" in options:
        found["delete"] = options["_delete"]
    return found


@reduces("mmap.mmap")
def reduce_mapping(_pickler: StatePickler, value: Any) -> Any:
    """Save an anonymous memory map with its content."""
    try:
        content = value[:]
    except ValueError:
        return (rebuild_mapping, (b"", 0, True))
    if _maps_file(value):
        raise CannotPersistError("a memory map of a file cannot be opened again; use numpy.memmap")
    return (rebuild_mapping, (content, value.tell(), False))


def _maps_file(value: Any) -> bool:
    from ..memory import address_of

    address = address_of(memoryview(value))
    with open("/proc/self/maps", encoding="ascii", errors="replace") as file:
        for line in file:
            span, _permissions, _offset, _device, inode, *_path = line.split(maxsplit=5)
            start, _, stop = span.partition("-")
            if int(start, 16) <= address < int(stop, 16):
                return inode != "0" and not (_path and _path[0].startswith("/dev/zero"))
    return False


@rebuilder
def rebuild_mapping(content: bytes, position: int, closed: bool) -> Any:
    """Make an anonymous memory map."""
    import mmap

    made = mmap.mmap(-1, max(1, len(content)))
    if closed:
        made.close()
        return made
    made[:] = content
    made.seek(position)
    return made

"""Small repairs of what a sandbox's file system and limits would break."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
from typing import Any

from .limits import allow_data

PAGE = 4096
THREAD_STACK = 8 << 20
"""Address space of a thread's stack, in bytes: it counts as memory, but is hardly ever used."""


def install() -> None:
    """Put the repairs in place."""
    uncharge_state()
    os.rename = _with_copying(os.rename)
    os.replace = _with_copying(os.replace)
    start = threading.Thread.start

    def start_thread(self: threading.Thread) -> None:
        allow_data(THREAD_STACK)
        start(self)

    start_thread.__doc__, start_thread.__name__ = start.__doc__, start.__name__
    start_thread.__qualname__ = start.__qualname__
    threading.Thread.start = start_thread  # type: ignore[method-assign]


def uncharge_state() -> None:
    """Let what saved variables map into memory not count as the cell's memory."""
    try:
        from .state.memory import Memory
    except ImportError:
        return
    map_buffer = Memory.map

    def map(self: Memory, buffer: Any) -> Any:  # noqa: A001 - its name there
        allow_data(buffer.length + PAGE)
        return map_buffer(self, buffer)

    Memory.map = map  # type: ignore[method-assign]


def _with_copying(rename: Any) -> Any:
    """Wrap a rename: directories of a lower overlay layer cannot be renamed, only copied."""

    def renaming(src: Any, dst: Any, *, src_dir_fd: Any = None, dst_dir_fd: Any = None) -> None:
        try:
            rename(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        except OSError as error:
            plain = src_dir_fd is None and dst_dir_fd is None
            if error.errno != errno.EXDEV or not plain or not _is_directory(src):
                raise
            move_directory(os.fsdecode(src), os.fsdecode(dst), rename)

    renaming.__name__ = renaming.__qualname__ = rename.__name__
    renaming.__doc__ = rename.__doc__
    return renaming


def _is_directory(path: Any) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def move_directory(source: str, target: str, rename: Any) -> None:
    """Move a directory by copying it next to its new place, then renaming the copy.

    Raises
    ------
    OSError
        As a rename would: the target is a file, or a directory that is not empty.
    """
    if os.path.lexists(target) and (not _is_directory(target) or os.listdir(target)):
        code = errno.ENOTEMPTY if _is_directory(target) else errno.ENOTDIR
        raise OSError(code, os.strerror(code), source, None, target)
    parent = os.path.dirname(os.path.abspath(target))
    workshop = tempfile.mkdtemp(prefix=".moving-", dir=parent)
    try:
        copy = os.path.join(workshop, "copy")
        shutil.copytree(source, copy, symlinks=True)
        rename(copy, target)
        shutil.rmtree(source)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)

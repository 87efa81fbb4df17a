"""Merging layers into one, by hard links.

By descriptors, a constant number of them: a cell may nest directories deeper than a path can say, and close
them to its own user.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from .overlay import is_opaque, mark_opaque
from .trees import DIRECTORY, close_locked, copy_data, open_unlocked, remove

ALL = os.R_OK | os.W_OK | os.X_OK


def squash(stack: list[Path], target: Path) -> None:
    """Merge upper directories (top first) into one, by hard links.

    Deletions (whiteouts) and replaced directories (opaque marks) keep hiding what lies below
    the group. Nothing else may write in the directories meanwhile.

    Raises
    ------
    OSError
        What was merged until then is left for the caller to remove.
    """
    target.mkdir(parents=True)
    spares = target.with_name(f"{target.name}-spares")
    spares.mkdir()
    for layer in stack:
        if is_opaque(target):
            break
        _Addition(layer, target, spares).run()
        if is_opaque(layer):
            mark_opaque(target)
    remove(spares)


@dataclass(slots=True)
class _Level:
    """A directory on the way down.

    Attributes
    ----------
    waiting
        Names of the directories in it that are still to be added.
    lock
        Rights that the layer's directory gets back; None: it was open.
    mode, times
        What the merged directory gets once it is complete.
    """

    waiting: list[str]
    lock: int | None = None
    mode: int = 0
    times: tuple[int, int] = (0, 0)


class _Addition:
    """Adds a layer to the target, below what is there already.

    Only the current directories are open, and the way back is ``..``: the layers are still.
    """

    def __init__(self, layer: Path, target: Path, spares: Path) -> None:
        self._source, self._target, self._spares = (
            os.open(path, DIRECTORY) for path in (layer, target, spares)
        )
        self._levels: list[_Level] = []

    def run(self) -> None:
        """Add all of it; after a failure the layer is as it was."""
        try:
            self._levels.append(_Level(self._add_files()))
            while self._levels[-1].waiting or len(self._levels) > 1:
                if self._levels[-1].waiting:
                    self._enter(self._levels[-1].waiting.pop())
                else:
                    self._leave()
        finally:
            with contextlib.suppress(OSError):
                while len(self._levels) > 1:
                    self._leave()
            for file in (self._source, self._target, self._spares):
                os.close(file)

    def _enter(self, name: str) -> None:
        with contextlib.ExitStack() as undo:
            source, lock = open_unlocked(name, self._source)
            undo.callback(close_locked, source, lock)
            made = True
            try:
                os.mkdir(name, dir_fd=self._target)
            except FileExistsError:
                made = False
            try:
                target, closed = open_unlocked(name, self._target, ALL)
            except NotADirectoryError:
                return  # hidden by a file or a deletion above
            undo.callback(close_locked, target, closed)
            if made:
                shutil.copystat(f"/proc/self/fd/{source}", f"/proc/self/fd/{target}")
                os.fchmod(target, stat.S_IRWXU)
                kept, closed = os.fstat(source), lock
            elif is_opaque(target):
                return
            else:
                kept = os.fstat(target)
                if is_opaque(source):
                    mark_opaque(target)
            undo.pop_all()
        os.close(self._source)
        os.close(self._target)
        self._source, self._target = source, target
        mode = stat.S_IMODE(kept.st_mode) if closed is None else closed
        level = _Level([], lock, mode, (kept.st_atime_ns, kept.st_mtime_ns))
        self._levels.append(level)
        level.waiting = self._add_files()

    def _leave(self) -> None:
        source, target = (
            os.open("..", DIRECTORY, dir_fd=file) for file in (self._source, self._target)
        )
        level = self._levels.pop()
        close_locked(self._source, level.lock)
        os.utime(self._target, ns=level.times)
        os.fchmod(self._target, level.mode)
        os.close(self._target)
        self._source, self._target = source, target

    def _add_files(self) -> list[str]:
        """Add what is no directory in the current one; return the names of the directories."""
        directories = []
        with os.scandir(self._source) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.name)
                else:
                    self._add_file(entry.name)
        return directories

    def _add_file(self, name: str) -> None:
        try:
            _link(name, self._source, name, self._target)
        except FileExistsError:
            with contextlib.suppress(NotADirectoryError):
                # A directory above: what lies below the file is no part of it.
                directory, lock = open_unlocked(name, self._target, ALL)
                mark_opaque(directory)
                close_locked(directory, lock)
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            self._add_spare(name)

    def _add_spare(self, name: str) -> None:
        """Add a file that has all the links a file can have (deletions share one): from a copy of it."""
        info = os.stat(name, dir_fd=self._source, follow_symlinks=False)
        spare = str(info.st_ino)
        with contextlib.suppress(FileNotFoundError):
            try:
                return _link(spare, self._spares, name, self._target)
            except OSError as error:
                if error.errno != errno.EMLINK:
                    raise
                os.unlink(spare, dir_fd=self._spares)
        self._copy(name, info, f"/proc/self/fd/{self._spares}/{spare}")
        return _link(spare, self._spares, name, self._target)

    def _copy(self, name: str, info: os.stat_result, copy: str) -> None:
        source = f"/proc/self/fd/{self._source}/{name}"
        if stat.S_ISLNK(info.st_mode):
            os.symlink(os.readlink(source), copy)
        elif stat.S_ISREG(info.st_mode):
            file, lock = open_unlocked(name, self._source, os.R_OK, 0)
            try:
                with open(copy, "xb") as made:
                    copy_data(file, made.fileno(), info.st_size)
            finally:
                close_locked(file, lock)
        else:
            os.mknod(copy, info.st_mode, info.st_rdev)
        shutil.copystat(source, copy, follow_symlinks=False)


def _link(name: str, source: int, fresh: str, target: int) -> None:
    os.link(name, fresh, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)

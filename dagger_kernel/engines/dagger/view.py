"""Looking into a state from outside: list, read, compare, pack.

Listing and packing run a trusted helper in a container on the state (`inside`), reading takes the file out
of the engine after every component of its path was seen to be no link: a state never changes.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import EngineError, SandboxPathError
from ..base import FileInfo
from ..files import split
from ..layout import HOME
from . import dress, faults
from .chain import OTHER, Ground
from .inside.difference import TOO_LARGE
from .states import State

if TYPE_CHECKING:
    import dagger

KEPT_BYTES = 128 << 20
"""Files taken out of the engine are kept for the next range of the same file, up to this much."""
ARCHIVE = "/run/dagger-kernel-layer.tar.gz"
KINDS = frozenset(("file", "directory", "link", "other"))


class View:
    """Reads states of one session. Belongs to one event loop.

    Parameters
    ----------
    ground
        Of the session.
    directory
        Where files taken out are kept: private to this kernel.
    """

    def __init__(self, ground: Ground, directory: Path) -> None:
        self._ground = ground
        self._directory = directory / "files"
        self._kept: dict[tuple[str, str], tuple[Path, int]] = {}

    async def list(self, state: State, path: str, *, recursive: bool) -> list[FileInfo]:
        """List a directory below ``/home/sandbox``, sorted by path; see `Engine.files`."""
        inner = "/".join(split(path))
        options = ["--recursive"] if recursive else []
        helper = self._trusted(state).with_exec(self._ground.inside("list", inner, *options))
        with faults.translated("listing files"):
            text = await helper.stdout()
        found = json.loads(text)
        if found.get("error") == "link":
            raise SandboxPathError(path, "it leads through a link")
        if "error" in found:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return sorted(map(_info, found["entries"]), key=lambda info: info.path)

    async def pack(self, state: State, parent: State, max_bytes: int) -> bytes | None:
        """Return the difference of two states as an archive; see `Engine.export_layer`."""
        import dagger

        helper = (
            self._trusted(state)
            .with_mounted_directory(OTHER, parent.container.rootfs())
            .with_exec(
                self._ground.inside("pack", OTHER, ARCHIVE, str(max_bytes)),
                expect=dagger.ReturnType.ANY,
            )
        )
        with faults.translated("packing a layer"):
            helper = await helper.sync()
            code = await helper.exit_code()
            if code == TOO_LARGE:
                return None
            if code != 0:
                words = faults.brief(await helper.stderr())
                raise EngineError(f"A layer could not be packed: {words}", engine=faults.NAME)
            self._directory.mkdir(mode=0o700, exist_ok=True)
            place = self._directory / f"layer-{state.key[:20]}"
            await helper.file(ARCHIVE).export(os.fspath(place))
        data = await asyncio.to_thread(place.read_bytes)
        place.unlink()
        return data

    def _trusted(self, state: State) -> dagger.Container:
        return state.container.with_user(dress.ROOT)

    async def take(self, state: State, path: str) -> Path:
        """Take a regular file out of the engine, unless it is here from before; see `Engine.read`."""
        parts = split(path)
        if not parts:
            raise SandboxPathError(path, "it is a directory")
        name = (state.key, "/".join(parts))
        if name in self._kept:
            self._kept[name] = self._kept.pop(name)
            return self._kept[name][0]
        await self._check(state, parts, path)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        place = self._directory / hashlib.sha256("\0".join(name).encode()).hexdigest()
        file = state.container.file(f"{HOME}/{name[1]}")
        with faults.translated("reading a file"):
            await file.export(os.fspath(place))
        info = place.lstat()
        if not stat.S_ISREG(info.st_mode):
            raise SandboxPathError(path, "it is no regular file")
        place.chmod(0o600)
        self._kept[name] = (place, info.st_size)
        while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > KEPT_BYTES:
            self._kept.pop(next(iter(self._kept)))[0].unlink(missing_ok=True)
        return place

    async def _check(self, state: State, parts: tuple[str, ...], path: str) -> None:
        """See that a path leads to a regular file, through directories only."""
        rootfs = state.container.rootfs()
        prefixes = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        kinds = await asyncio.gather(
            *(self._kind(rootfs, f"{HOME}/{prefix}") for prefix in prefixes)
        )
        for prefix, kind in zip(prefixes, kinds, strict=True):
            last = prefix == prefixes[-1]
            if kind == "SYMLINK":
                why = "it is a link" if last else "it leads through a link"
                raise SandboxPathError(path, why)
            if kind == "" or (not last and kind != "DIRECTORY"):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            if last and kind != "REGULAR":
                raise SandboxPathError(
                    path, f"it is a {'directory' if kind == 'DIRECTORY' else 'device or pipe'}"
                )

    @staticmethod
    async def _kind(rootfs: dagger.Directory, place: str) -> str:
        """Return the engine's word for a file's type; empty: there is none."""
        try:
            kind = await rootfs.stat(place, do_not_follow_symlinks=True).file_type()
        except Exception as error:
            text = str(error)
            if "no such file" in text or "not a directory" in text:
                return ""
            raise faults.translate(error, "looking at a file") from error
        return kind.name if kind is not None else "UNKNOWN"


def _info(entry: Any) -> FileInfo:
    """Return an entry of a listing, checked: it comes out of a sandbox."""
    path, kind, size, mode, mtime = entry
    return FileInfo(
        path=str(path),
        kind=kind if kind in KINDS else "other",
        size=int(size),
        mode=int(mode),
        mtime=float(mtime),
    )

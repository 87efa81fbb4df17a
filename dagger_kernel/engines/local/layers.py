"""The layers on disk: one directory per key, named by it, made durable by rename.

Each directory ``<name>/fs`` is the upper directory of the overlay in which its step ran; ``<name>/layer.json``
says which directories lie below it. The number of directories under a state stays small however long
the chain is: every 16 layers are squashed into one, every 16 of those into the next
(the scheme of a log-structured merge tree). Squashing never changes a key: it adds a directory
with hard links to the same files and shortens the list below later layers.

Rooms are mounted without syncing (``volatile``): nobody waits for a disk to keep a cache. A layer whose
bytes may not have reached the disk counts only until the machine's next start; see `LayerStore.settle`.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ...errors import StorageFullError
from .trees import remove

FANOUT = 16
PARTS = ("home/sandbox", "tmp", ".dk")
OPAQUE = "user.overlay.opaque"
SETTLED = "settled"
STALE_SECONDS = 2 * 86400.0
NAME_DIGITS = 20
"""Hexadecimal digits of a key in a directory name (80 bits): overlay options must stay under one page."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A cached state.

    Attributes
    ----------
    key, parent_key
        Full keys.
    depth
        Steps since the base.
    lowers
        Directory names from this layer down to the base (which is not in the list).
    base
        Digest of the base below them.
    """

    key: str
    parent_key: str
    depth: int
    lowers: tuple[str, ...]
    base: str


class LayerStore:
    """Layers below one directory. Safe for several processes: names are unique, changes are renames."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._unsettled: list[Path] = []

    def path(self, key: str) -> Path:
        """Return the upper directory of a cached state."""
        return self.root / name_of(key) / "fs"

    def get(self, key: str) -> Layer | None:
        """Return the cached state of a key with every directory it needs, else None."""
        try:
            data = json.loads((self.root / name_of(key) / "layer.json").read_bytes())
            layer = Layer(
                data["key"], data["parent"], data["depth"], tuple(data["lowers"]), data["base"]
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        settled = data.get("boot") == boot_id() or (self.root / name_of(key) / SETTLED).exists()
        if layer.key != key or not settled:
            return None
        whole = all((self.root / lower / "fs").is_dir() for lower in layer.lowers)
        return layer if whole else None

    def new_room(self) -> str:
        """Make an empty upper and work directory; return their name below the root.

        Raises
        ------
        StorageFullError
        """
        name = f"room-{secrets.token_hex(8)}"
        try:
            for part in PARTS:
                (self.root / name / "fs" / part).mkdir(parents=True, mode=0o755)
            (self.root / name / "fs" / "tmp").chmod(0o1777)
            (self.root / name / "work").mkdir(mode=0o700)
        except OSError as error:
            raise full_or(error) from error
        return name

    def commit(self, room: str, key: str, parent: Layer) -> Layer:
        """Turn a room's upper directory into the layer of a key.

        Another process may have made the same layer meanwhile: then that one stands.
        """
        source, target = self.root / room, self.root / name_of(key)
        lowers = (name_of(key), *parent.lowers)
        layer = Layer(key, parent.key, parent.depth + 1, lowers, parent.base)
        remove(source / "work")
        try:
            (source / "layer.json").write_text(_to_json(layer), "ascii")
            self._place(source, target, lambda: self.get(key) is not None)
        except OSError as error:
            raise full_or(error) from error
        self._unsettled.append(target)
        return self._squash(layer)

    def settle(self) -> None:
        """Write the layers made here to the disk, so that they count after a restart of the machine."""
        layers, self._unsettled = self._unsettled, []
        if layers:
            os.sync()
        for layer in layers:
            try:
                (layer / SETTLED).touch()
            except OSError:
                pass  # evicted meanwhile, or no space: then it is made again when it is needed

    def _place(self, source: Path, target: Path, whole: Callable[[], bool]) -> None:
        """Give a directory its final name; a whole one that is there already stands, a damaged one goes."""
        for _ in range(3):
            try:
                os.rename(source, target)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
            else:
                return
            if whole():
                remove(source)
                return
            self._evict(target.name)
        raise OSError(errno.EEXIST, "a damaged layer cannot be replaced", str(target))

    def sweep(self, older_than: float = STALE_SECONDS) -> int:
        """Remove rooms that killed processes left; return how many. No room lives so long."""
        oldest, count = time.time() - older_than, 0
        for name in os.listdir(self.root):
            if name.startswith("room-"):
                try:
                    stale = os.lstat(self.root / name).st_mtime < oldest
                except OSError:
                    continue
                if stale:
                    remove(self.root / name)
                    count += 1
        return count

    def drop(self, room: str) -> None:
        """Remove a room that leaves nothing."""
        remove(self.root / room)

    def evict(self, keys: list[str] | None) -> int:
        """Remove layers (None: all, squashed ones too); return how many."""
        if keys is None:
            names = [n for n in os.listdir(self.root) if not n.startswith("room-")]
        else:
            names = [name_of(key) for key in keys]
        count = 0
        for name in names:
            count += self._evict(name)
        return count

    def _evict(self, name: str) -> bool:
        doomed = self.root / f"room-evicted-{secrets.token_hex(8)}"
        try:
            os.rename(self.root / name, doomed)
        except OSError:
            return False
        remove(doomed)
        return True

    def _squash(self, layer: Layer) -> Layer:
        level, size = 1, FANOUT
        while layer.depth % size == 0:
            merged = f"s{level}-{layer.lowers[0].rpartition('-')[2]}"
            group, rest = layer.lowers[:FANOUT], layer.lowers[FANOUT:]
            if not (self.root / merged / "fs").is_dir():
                stage = self.root / f"room-squash-{secrets.token_hex(8)}"
                try:
                    squash([self.root / name / "fs" for name in group], stage / "fs")
                    self._place(stage, self.root / merged, (self.root / merged / "fs").is_dir)
                except (OSError, RecursionError):
                    # Squashing only accelerates: without space, or with directories nested too deep
                    # for a path, the longer list serves on.
                    remove(stage)
                    return layer
            layer = replace(layer, lowers=(merged, *rest))
            own = self.root / name_of(layer.key) / "layer.json"
            fresh = own.with_suffix(f".{secrets.token_hex(4)}")
            fresh.write_text(_to_json(layer), "ascii")
            os.replace(fresh, own)
            level, size = level + 1, size * FANOUT
        return layer


@functools.cache
def boot_id() -> str:
    """Return what names this run of the machine's kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def name_of(key: str) -> str:
    """Return the directory name of a key."""
    return key[:NAME_DIGITS]


def squash(stack: list[Path], target: Path) -> None:
    """Merge upper directories (top first) into one, by hard links.

    Deletions (whiteouts) and replaced directories (opaque marks) keep hiding what lies below
    the group.
    """
    target.mkdir(parents=True)
    _merge([os.fspath(path) for path in stack], os.fspath(target))


def _merge(stack: list[str], target: str) -> None:
    seen: dict[str, list[str]] = {}  # directory name -> where it exists, top first
    closed: set[str] = set()  # names that hide whatever lies further down
    opaque = False
    for directory in stack:
        for entry in os.scandir(directory):
            if entry.name in closed:
                continue
            if entry.is_dir(follow_symlinks=False):
                seen.setdefault(entry.name, []).append(entry.path)
            else:
                closed.add(entry.name)
                if entry.name not in seen:
                    os.link(entry.path, os.path.join(target, entry.name), follow_symlinks=False)
                elif not _is_whiteout(entry):
                    continue
        if is_opaque(directory):
            opaque = True
            break
    for name, places in seen.items():
        made = os.path.join(target, name)
        os.mkdir(made)
        _merge(places, made)
        if name in closed:
            os.setxattr(made, OPAQUE, b"y")
        shutil.copystat(places[0], made)
    if opaque:
        os.setxattr(target, OPAQUE, b"y")


def is_opaque(directory: str | Path) -> bool:
    """Whether a directory of a layer hides its namesakes below."""
    try:
        return os.getxattr(directory, OPAQUE) == b"y"
    except OSError:
        return False


def _is_whiteout(entry: os.DirEntry[str]) -> bool:
    return is_whiteout(entry.stat(follow_symlinks=False))


def is_whiteout(info: os.stat_result) -> bool:
    """Whether a directory entry of a layer marks a deletion (a character device 0:0)."""
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


def _to_json(layer: Layer) -> str:
    values = {**asdict(layer), "boot": boot_id()}
    return json.dumps({**values, "parent": values.pop("parent_key")})


def full_or(error: OSError) -> Exception:
    """Return the package's error for a full disk, else the error itself."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFullError("No space is left for the layers of the local engine.")
    return error

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

import asyncio
import contextlib
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

from ...errors import RoomLostError, StorageFullError
from .leases import Leases
from .seals import OPAQUE, Seal
from .trees import remove

FANOUT = 16
PARTS = ("home/sandbox", "tmp", ".dk", "skills")
RECORD = "layer.json"
SETTLED = "settled"
SETTLE_SECONDS = 1.0
"""How long sealing may take when an engine is closed; what is left is settled without a seal."""
STALE_SECONDS = 2 * 86400.0
NAME_DIGITS = 20
"""Hexadecimal digits of a key in a directory name (80 bits): overlay options must stay under one page."""


Ground = tuple[tuple[int, int] | None, ...]
"""What identifies each directory of a state, top first; None for a missing one."""


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
        self.leases = Leases(root)
        self._unsettled: list[Path] = []

    def path(self, key: str) -> Path:
        """Return the upper directory of a cached state."""
        return self.root / name_of(key) / "fs"

    def get(self, key: str) -> Layer | None:
        """Return the cached state of a key with every directory it needs, else None."""
        try:
            data = json.loads((self.root / name_of(key) / RECORD).read_bytes())
            layer = Layer(
                data["key"], data["parent"], data["depth"], tuple(data["lowers"]), data["base"]
            )
            ground = tuple((int(node), int(moment)) for node, moment in data["ground"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        settled = data.get("boot") == boot_id() or (self.root / name_of(key) / SETTLED).exists()
        if layer.key != key or not settled:
            return None
        # Another directory of the same name is another making of that state: what refers to the bytes of the one
        # before it (a variable that lies below) does not fit on it.
        return layer if self.ground(layer) == ground else None

    def new_room(self, parent: Layer | None = None) -> str:
        """Make an empty upper and work directory; return their name below the root.

        What lies below the room is in use until `commit` or `drop`: nobody collects it.

        Raises
        ------
        RoomLostError
            The parent was collected a moment ago; it can be made again.
        StorageFullError
        """
        name = f"room-{secrets.token_hex(8)}"
        lowers = parent.lowers if parent is not None else ()
        try:
            with self.leases.gate():
                if parent is not None and None in self.ground(parent):
                    raise RoomLostError("The layers below the room are gone.", engine="local")
                self.leases.take(name, lowers)
            if parent is not None and lowers:
                self._used(parent)
            for part in PARTS:
                (self.root / name / "fs" / part).mkdir(parents=True, mode=0o755)
            (self.root / name / "fs" / "tmp").chmod(0o1777)
            (self.root / name / "work").mkdir(mode=0o700)
        except OSError as error:
            self.drop(name)
            raise full_or(error) from error
        return name

    def ground(self, layer: Layer) -> Ground:
        """Return what identifies the directories of a state; None for one that is missing."""
        return tuple(identity(self.root / lower / "fs") for lower in layer.lowers)

    def _used(self, layer: Layer) -> None:
        """Note the use: what was not used for the longest time is collected first."""
        with contextlib.suppress(OSError):
            os.utime(self.root / name_of(layer.key) / RECORD)

    def commit(self, room: str, key: str, parent: Layer) -> Layer:
        """Turn a room's upper directory into the layer of a key.

        Another process may have made the same layer meanwhile: then that one stands.
        """
        source, target = self.root / room, self.root / name_of(key)
        lowers = (name_of(key), *parent.lowers)
        layer = Layer(key, parent.key, parent.depth + 1, lowers, parent.base)
        remove(source / "work")
        try:
            # Its own place in the list is the room's still.
            ground = (identity(source / "fs"), *self.ground(parent))
            (source / RECORD).write_text(_to_json(layer, ground), "ascii")
            self._place(source, target, lambda: self.get(key) is not None)
        except OSError as error:
            raise full_or(error) from error
        self._unsettled.append(target)
        layer = self._squash(layer)
        self.leases.end(room)
        return layer

    def settle(self) -> None:
        """Write the layers made here to the disk, so that they count after a restart of the machine."""
        layers, self._unsettled = self._unsettled, []
        if layers:
            os.sync()
        deadline = time.monotonic() + SETTLE_SECONDS
        for layer in layers:
            seal = Seal.of(layer / "fs", deadline)
            try:
                seal.write(layer / SETTLED) if seal else (layer / SETTLED).touch()
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
            remove(self.doom(target.name))
        raise OSError(errno.EEXIST, "a damaged layer cannot be replaced", str(target))

    def sweep(self, older_than: float = STALE_SECONDS) -> int:
        """Remove rooms of dead processes, and what they left half removed for so long; return how many."""
        oldest = time.time() - older_than
        with self.leases.gate(collecting=True):
            known = self.leases.known()
            living = self.leases.living().keys()
            rooms = [name for name in os.listdir(self.root) if name.startswith("room-")]
            # Leases tell, not the clock, which may jump: a running cell would lose its files.
            doomed = [
                self.doom(name)
                for name in rooms
                if name not in living and (name in known or self._is_older(name, oldest))
            ]
        for path in doomed:
            remove(path)
        return len(doomed)

    def _is_older(self, name: str, oldest: float) -> bool:
        try:
            return os.lstat(self.root / name).st_mtime < oldest
        except OSError:
            return False

    def drop(self, room: str) -> None:
        """Remove a room that leaves nothing."""
        remove(self.root / room)
        self.leases.end(room)

    def evict(self, keys: list[str] | None) -> int:
        """Remove layers and what was squashed on them (None: all); return how many. None that is in use."""
        with self.leases.gate(collecting=True):
            names = self.names()
            if keys is not None:
                wanted = {name_of(key) for key in keys}
                names = [name for name in names if name.rpartition("-")[2] in wanted]
            used = self.used()
            doomed = [self.doom(name) for name in names if name not in used]
        for path in doomed:
            remove(path)
        return len(doomed)

    def names(self) -> list[str]:
        """Return the names of all layers, squashed ones too."""
        return [n for n in os.listdir(self.root) if not n.startswith(("room-", "."))]

    def used(self) -> set[str]:
        """Return the names of the layers that are in use, by any process. Within the gate."""
        return set().union(*self.leases.living().values())

    def doom(self, name: str) -> Path:
        """Take away a directory's name; return the new one, for `remove`. Within the gate, if others may use it."""
        doomed = self.root / f"room-evicted-{secrets.token_hex(8)}"
        with contextlib.suppress(OSError):
            os.rename(self.root / name, doomed)
        return doomed

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
                    self._unsettled.append(self.root / merged)
                except (OSError, RecursionError):
                    # Squashing only accelerates: without space, or with directories nested too deep
                    # for a path, the longer list serves on.
                    remove(stage)
                    return layer
            layer = replace(layer, lowers=(merged, *rest))
            own = self.root / name_of(layer.key) / RECORD
            fresh = own.with_suffix(f".{secrets.token_hex(4)}")
            fresh.write_text(_to_json(layer, self.ground(layer)), "ascii")
            os.replace(fresh, own)
            level, size = level + 1, size * FANOUT
        return layer


async def make_room(store: LayerStore, parent: Layer | None = None) -> str:
    """Do `LayerStore.new_room` in a thread; a room that comes after a cancellation is dropped."""
    making = asyncio.ensure_future(asyncio.to_thread(store.new_room, parent))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:

        def drop(made: asyncio.Future[str]) -> None:
            if not made.cancelled() and made.exception() is None:
                store.drop(made.result())

        making.add_done_callback(drop)
        raise


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a directory from another one of its name; None: there is none.

    Its number (which a later one may get again) and the time of its last entry; a layer gets no more.
    """
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_ino, info.st_mtime_ns


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
        with os.scandir(directory) as entries:
            for entry in entries:
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


def _to_json(layer: Layer, ground: Ground) -> str:
    values = {**asdict(layer), "boot": boot_id(), "ground": ground}
    return json.dumps({**values, "parent": values.pop("parent_key")})


def full_or(error: OSError) -> Exception:
    """Return the package's error for a full disk, else the error itself."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFullError("No space is left for the layers of the local engine.")
    return error

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
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...errors import RoomLostError, StorageFullError
from .layer import RECORD, SETTLED, Ground, Layer, identity, name_of
from .leases import Leases
from .seals import Seal
from .squash import squash
from .trees import remove

FANOUT = 16
LONGEST = 5 * FANOUT
"""More directories than this are squashed out of turn: some squashing failed, and an overlay takes 148."""
PARTS = ("home/sandbox", "tmp", ".dk", "skills")
SETTLE_SECONDS = 1.0
"""How long sealing may take when an engine is closed; what is left is settled without a seal."""
STALE_SECONDS = 2 * 86400.0


class LayerStore:
    """Layers below one directory. Safe for several processes: names are unique, changes are renames."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.leases = Leases(root)
        self._unsettled: list[Path] = []
        self._grounds: dict[str, Ground] = {}  # of the open rooms

    def path(self, key: str) -> Path:
        """Return the upper directory of a cached state."""
        return self.root / name_of(key) / "fs"

    def get(self, key: str) -> Layer | None:
        """Return the cached state of a key with every directory it needs, else None."""
        found = Layer.recorded(self.root / name_of(key))
        if found is None or found[0].key != key:
            return None
        layer, ground = found
        # Another directory of the same name is another making of that state: what refers to the bytes of the one
        # before it (a variable that lies below) does not fit on it.
        return layer if self.ground(layer) == ground else None

    def new_room(self, parent: Layer) -> str:
        """Make an empty upper and work directory; return their name below the root.

        What lies below the room is in use until `commit` or `drop`: nobody collects it.

        Raises
        ------
        RoomLostError
            The parent was collected a moment ago; it can be made again.
        StorageFullError
        """
        name = f"room-{secrets.token_hex(8)}"
        try:
            with self.leases.gate():
                ground = self.ground(parent)
                if None in ground:
                    raise RoomLostError("The layers below the room are gone.", engine="local")
                self.leases.take(name, parent.lowers)
            self._grounds[name] = ground
            if parent.lowers:
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

    def stands(self, room: str, parent: Layer) -> bool:
        """Whether nobody took away, or made again, what lies below an open room."""
        return self.ground(parent) == self._grounds.get(room)

    def _used(self, layer: Layer) -> None:
        """Note the use: what was not used for the longest time is collected first."""
        with contextlib.suppress(OSError):
            os.utime(self.root / name_of(layer.key) / RECORD)

    def commit(self, room: str, key: str, parent: Layer) -> Layer:
        """Turn a room's upper directory into the layer of a key.

        Another process may have made the same layer meanwhile: then that one stands.

        Raises
        ------
        RoomLostError
            What lay below the room is gone, or was made again: this does not fit on it.
        StorageFullError
        """
        source, target = self.root / room, self.root / name_of(key)
        lowers = (name_of(key), *parent.lowers)
        layer = Layer(key, parent.key, parent.depth + 1, lowers, parent.base)
        remove(source / "work")
        if not self.stands(room, parent):
            raise RoomLostError("The layers below the room are gone.", engine="local")
        try:
            # Its own place in the list is the room's still.
            ground = (identity(source / "fs"), *self._grounds[room])
            (source / RECORD).write_text(layer.record(ground), "ascii")
            self._place(source, target, lambda: self.get(key) is not None)
        except OSError as error:
            raise full_or(error) from error
        self._unsettled.append(target)
        layer = self._squash(layer)
        self._end(room)
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
        self._end(room)

    def _end(self, room: str) -> None:
        self._grounds.pop(room, None)
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
        # Without space the longer list serves on.
        with contextlib.suppress(OSError):
            while layer.depth % size == 0:
                layer = self._merged(layer, FANOUT, level)
                level, size = level + 1, size * FANOUT
            if len(layer.lowers) > LONGEST:
                layer = self._merged(layer, len(layer.lowers), 0)
        return layer

    def _merged(self, layer: Layer, count: int, level: int) -> Layer:
        """Return a layer whose topmost directories are merged into one."""
        merged = f"s{level}-{name_of(layer.key)}"
        group, rest = layer.lowers[:count], layer.lowers[count:]
        if not (self.root / merged / "fs").is_dir():
            stage = self.root / f"room-squash-{secrets.token_hex(8)}"
            ground = self.ground(layer)
            try:
                squash([self.root / name / "fs" for name in group], stage / "fs")
                if self.ground(layer) != ground:
                    # Part of it may have been missing: merged, nobody would notice any more.
                    raise OSError(errno.ESTALE, "layers were removed while they were merged")
                self._place(stage, self.root / merged, (self.root / merged / "fs").is_dir)
            except OSError:
                remove(stage)
                raise
            self._unsettled.append(self.root / merged)
        layer = replace(layer, lowers=(merged, *rest))
        own = self.root / name_of(layer.key) / RECORD
        fresh = own.with_suffix(f".{secrets.token_hex(4)}")
        fresh.write_text(layer.record(self.ground(layer)), "ascii")
        os.replace(fresh, own)
        return layer


async def make_room(store: LayerStore, parent: Layer) -> str:
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


def full_or(error: OSError) -> Exception:
    """Return the package's error for a full disk, else the error itself."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFullError("No space is left for the layers of the local engine.")
    return error

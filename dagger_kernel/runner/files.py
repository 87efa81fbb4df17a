"""Which files a step made, changed or deleted under the user's directory."""

from __future__ import annotations

import fnmatch
import json
import os
import stat
import time
from collections.abc import Callable, Iterable
from typing import Any

from .limits import amount

SKIPPED = {".venv", "__pycache__", "node_modules"}
TOTAL = 64 << 20
"""Bytes of all files that one step sends."""

CLOCK_REALTIME_COARSE = 5
"""The clock that file times are taken from (Python's `time` does not name it)."""

LISTING = "files.json"
CHANGES = "changes"
"""Directory of one list for each step that changed files: what may not run again unseen."""

MAX_SKIPPED = 50
"""Skipped files that are named one by one."""

KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

Entry = list[int]
"""Modification time, change time (both in ns) and size of a file."""


class Files:
    """The user's files at the start of a step and after it.

    Made before any user code runs: what carries a later change time belongs to this step. The listing of the
    step before tells new from changed, and what is gone.
    """

    def __init__(self, home: str, state_dir: str) -> None:
        self.home = home
        self.state_dir = state_dir
        self.listing = os.path.join(state_dir, LISTING)
        self.unnamed = 0
        """Skipped files that got no frame of their own."""
        os.makedirs(state_dir, exist_ok=True)
        self.since = time.time_ns()

    def settle(self) -> None:
        """Wait until the file system's clock has passed our start: it ticks coarsely, a few ms at a time."""
        while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) < self.since:
            time.sleep(0.0005)

    def report(
        self,
        emit: Callable[[dict[str, Any], bytes], None],
        limits: dict[str, float],
        exclude: Iterable[str],
        step: str = "",
    ) -> int:
        """Send a ``file`` frame for each change; return how many.

        Parameters
        ----------
        emit
            Takes the frames.
        limits
            ``file_bytes`` and ``export_files`` are heeded.
        exclude
            Glob patterns of paths that nobody wants to see.
        step
            Identity of the step, for the list of changes that stays in the layer.
        """
        before = self._read_listing()
        after: dict[str, Entry] = {}
        odd: list[tuple[str, os.stat_result]] = []
        changed: list[tuple[str, str, os.stat_result]] = []
        unknown: list[tuple[str, os.stat_result]] = []
        for path, status in walk(self.home):
            if not stat.S_ISREG(status.st_mode):
                if status.st_ctime_ns >= self.since:
                    odd.append((path, status))
                continue
            entry = [status.st_mtime_ns, status.st_ctime_ns, status.st_size]
            after[path] = entry
            if status.st_ctime_ns >= self.since and before.get(path) != entry:
                changed.append((path, "changed" if path in before else "new", status))
            elif path not in before:
                unknown.append((path, status))
        deleted = [path for path in before if path not in after]
        # A moved directory's files keep their times: known by what has gone elsewhere.
        moved = {tuple(before[path]) for path in deleted}
        changed += [
            (path, "new", status) for path, status in unknown if tuple(after[path]) in moved
        ]
        if before != after or not os.path.exists(self.listing):
            self._write_listing(after)
        if paths := [*(path for path, *_ in changed), *(path for path, _ in odd), *deleted]:
            self._note_changes(step, paths)
        patterns = list(exclude)
        wanted = [item for item in changed if not excluded(item[0], patterns)]
        total = self._send(emit, wanted, limits)
        for path, status in odd:
            if not excluded(path, patterns) and (reason := self._why_skipped(path, status)):
                total += 1
                emit(head(path, "new", status, reason), b"")
        for path in deleted:
            if not excluded(path, patterns):
                total += 1
                emit(
                    {
                        "type": "file",
                        "path": path,
                        "kind": "deleted",
                        "size": 0,
                        "mode": 0,
                        "skipped": "",
                    },
                    b"",
                )
        return total

    def _send(self, emit: Any, wanted: list[Any], limits: dict[str, float]) -> int:
        room, sent, skipped = TOTAL, 0, 0
        largest = limits["file_bytes"]
        # Too large ones first: of many skipped files, these must be named.
        wanted.sort(key=lambda item: (item[2].st_size <= largest, item[2].st_mtime_ns))
        for path, kind, status in wanted:
            reason, content = "", b""
            if status.st_size > largest:
                reason = f"larger than {amount('file_bytes', largest)}"
            elif sent >= limits["export_files"]:
                reason = f"more than {limits['export_files']:g} files in one step"
            elif status.st_size > room:
                reason = f"more than {amount('file_bytes', TOTAL)} in one step"
            else:
                read = read_regular(os.path.join(self.home, path), int(largest))
                if read is None:
                    reason = "cannot be read"
                else:
                    content = read
            if reason:
                skipped += 1
                if skipped > MAX_SKIPPED:
                    continue
            else:
                sent += 1
                room -= len(content)
            emit(head(path, kind, status, reason), content)
        self.unnamed = max(0, skipped - MAX_SKIPPED)
        return sent + skipped

    def _why_skipped(self, path: str, status: os.stat_result) -> str:
        if stat.S_ISLNK(status.st_mode):
            target = os.path.realpath(os.path.join(self.home, path))
            inside = target == self.home or target.startswith(os.path.realpath(self.home) + os.sep)
            return "" if inside else "a link out of the sandbox's directory"
        return KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")

    def _read_listing(self) -> dict[str, Entry]:
        try:
            with open(self.listing, encoding="ascii") as stream:
                listing = json.load(stream)
        except (OSError, ValueError, RecursionError):
            return {}
        return listing if isinstance(listing, dict) else {}

    def _note_changes(self, step: str, paths: list[str]) -> None:
        """Keep the names, under the number of the state that the step left."""
        folder = os.path.join(self.state_dir, CHANGES)
        os.makedirs(folder, exist_ok=True)
        try:
            with open(os.path.join(self.state_dir, "HEAD"), encoding="ascii") as stream:
                number = stream.read(6)
        except (OSError, ValueError):
            number = "000000"
        path = os.path.join(folder, f"{number}-{step}.json")
        with open(path, "w", encoding="ascii") as stream:
            json.dump(paths, stream)

    def _write_listing(self, entries: dict[str, Entry]) -> None:
        temporary = self.listing + ".new"
        with open(temporary, "w", encoding="ascii") as stream:
            json.dump(entries, stream, separators=(",", ":"))
        os.replace(temporary, self.listing)


def head(path: str, kind: str, status: os.stat_result, skipped: str) -> dict[str, Any]:
    """Return a ``file`` frame's head."""
    return {
        "type": "file",
        "path": path,
        "kind": kind,
        "size": status.st_size,
        "mode": stat.S_IMODE(status.st_mode),
        "skipped": skipped,
    }


def walk(home: str) -> Iterable[tuple[str, os.stat_result]]:
    """Yield what lies under a directory, hidden and generated things left out; links are not followed."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(home, folder)) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name in SKIPPED:
                        continue
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        if path != "attachments":
                            folders.append(path)
                    else:
                        yield path, status
        except OSError:
            continue


def excluded(path: str, patterns: list[str]) -> bool:
    """Whether a path, its name or one of its directories matches a pattern."""
    parts = path.split("/")
    prefixes = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(
        fnmatch.fnmatch(candidate, pattern.rstrip("/"))
        for pattern in patterns
        for candidate in (*prefixes, parts[-1])
    )


def read_regular(path: str, limit: int) -> bytes | None:
    """Return a regular file's content, None if it is none (any more) or too large; never blocks."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with open(file, "rb", buffering=0) as stream:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        chunks = []
        room = limit
        while room > 0 and (chunk := stream.read(min(room, 1 << 20))):
            chunks.append(chunk)
            room -= len(chunk)
    return b"".join(chunks)

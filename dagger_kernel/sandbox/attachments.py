"""What was put into a sandbox, kept beside the log: the next upload reads the steps that are new, not the chain."""

from __future__ import annotations

from typing import Any

from ..log import LogStore
from ..steps import Kind, Step


class Attachments:
    """The uploaded files on a chain. Used by one writer of a sandbox, under the sandbox's lock."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._places: dict[str, int] = {}  # step id -> how many entries there were after it
        self._entries: list[dict[str, Any]] = []
        self._blobs: dict[str, str] = {}
        self._equal: dict[tuple[str, str], str] = {}
        self._kept: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = {}

    def forget(self) -> None:
        """Know nothing; the next `follow` reads the whole chain."""
        self._last = None
        for known in (self._places, self._entries, self._blobs, self._equal, self._kept):
            known.clear()
        self._numbers.clear()

    def follow(self, log: LogStore, tip: Step | None) -> None:
        """Go to a tip; costs what was appended since the last time. After a rewind: forget what it left.

        Raises
        ------
        LogError
        """
        if tip is None:
            self.forget()
            return
        new = [step for step, _ in log.chain_since(tip.id, self._places, outputs=False)]
        before = origin_of(new[0]) if new else tip.id
        if before != self._last:
            self._cut(before)
        for step in new:
            if step.kind is Kind.UPLOAD:
                for entry in step.payload.get("files", []):
                    self.take(entry)
            self.passed(step.id)

    def passed(self, step_id: str) -> None:
        """Note that what was taken is in the state after a step."""
        self._last = step_id
        self._places[step_id] = len(self._entries)

    def take(self, entry: dict[str, Any]) -> None:
        """Note a file: the entry of an upload step's payload."""
        path, given = entry["path"], entry.get("given", entry["path"])
        self._entries.append(entry)
        self._blobs[path] = entry["blob"]
        self._equal[given, entry["blob"]] = path
        if entry.get("origin"):
            self._kept[entry["origin"], given] = path

    def equal(self, given: str, blob: str) -> str | None:
        """Return where a file of this name and these bytes is, if it is there."""
        path = self._equal.get((given, blob))
        return path if path is not None and self._blobs[path] == blob else None

    def kept(self, origin: str, given: str) -> str | None:
        """Return the place of the earlier version of a file whose origin keeps it up to date."""
        return self._kept.get((origin, given)) if origin else None

    def free(self, path: str) -> str:
        """Return the path, with a readable number before the suffix if it is taken."""
        if path not in self._blobs:
            return path
        folder, _, name = path.rpartition("/")
        stem, dot, suffix = name.rpartition(".") if "." in name[1:] else (name, "", "")
        number = self._numbers.get(path, 1)
        candidate = path
        while candidate in self._blobs:
            number += 1
            candidate = f"{folder}/{stem} ({number}){dot}{suffix}"
        self._numbers[path] = number  # the thousandth file of a name is found as fast as the second
        return candidate

    def _cut(self, step_id: str | None) -> None:
        """Forget what came after a step; None: everything."""
        count = self._places[step_id] if step_id is not None else 0
        entries = self._entries[:count]
        # Steps of the branch that was left are not met again by walking back from a tip; cells that
        # stand on an earlier count of files may stay.
        places = {name: place for name, place in self._places.items() if place <= count}
        self.forget()
        for entry in entries:
            self.take(entry)
        if step_id is not None:
            self._places.update(places)
            self._last = step_id


def origin_of(step: Step) -> str | None:
    """Return the id of the step whose state a step continues; None: the base."""
    if step.kind is Kind.REWIND:
        target: str | None = step.payload.get("to")
        return target
    return step.parent_id

"""What lies beside a notebook is put into its sandbox before a cell: files of a folder, attachments of cells.

Looking costs one status per file; only what changed is read. The log tells what is there already, so a
restarted kernel puts nothing in twice.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..settings import Settings
from .hostfiles import MOST, files_below, open_file, open_folder
from .uploads import Given

FOLDER_ORIGIN = "folder"
NOTEBOOK_BYTES = 64 << 20
"""A larger notebook is not read for the attachments of its cells."""

Signature = tuple[int, int, int, int]


@dataclass
class Found:
    """What is new beside the notebook.

    Attributes
    ----------
    files
        To upload, opened one after another.
    notices
        What to tell the user.
    """

    files: Iterable[Given] = ()
    notices: list[str] = field(default_factory=list)
    taken: Callable[[dict[str, str]], None] = lambda _skipped: None
    """Called with what the upload left out, when the log has the rest."""


class Beside:
    """Looks for what is new. Used by one sandbox session.

    Parameters
    ----------
    directory
        The notebook's folder: the kernel's working directory.
    notebook
        The notebook's path if a Jupyter server told it; it is read only if it is in the directory.
    settings
        ``attachments_folder``, ``cell_attachments`` and ``file_bytes`` are used.
    """

    def __init__(self, directory: Path, notebook: str, settings: Settings) -> None:
        self._directory = os.path.realpath(directory)
        self._notebook = ""
        if settings.cell_attachments and notebook:
            folder, name = os.path.split(notebook)
            if os.path.realpath(os.path.join(directory, folder)) == self._directory:
                self._notebook = name
        self._settings = settings
        self._state: object = None
        self._seen: dict[str, Signature] = {}
        self._told: set[tuple[str, object]] = set()

    def look(self, state: object) -> Found:
        """Return what is new since the last look at the same branch of the same sandbox. Blocks."""
        if state != self._state:
            self._state = state
            self._seen.clear()
        notices: list[str] = []
        seen: dict[str, Signature] = {}
        names = self._new_in_folder(seen, notices)
        attached = self._new_in_cells(seen)

        def taken(skipped: dict[str, str]) -> None:
            for name, why in skipped.items():
                self._tell(notices, name, why, seen.get(name))
            self._seen |= seen

        if not names and not attached:
            self._seen |= seen
            return Found(notices=notices)
        return Found(self._opened(names, attached, seen), notices, taken)

    def _tell(self, notices: list[str], name: str, why: str, version: object) -> None:
        """Tell why something was left out, once for each version of it."""
        if (name, version) not in self._told:
            self._told.add((name, version))
            notices.append(f"{name!r} was not put into the sandbox: {why}.")

    # -- the folder

    def _new_in_folder(self, seen: dict[str, Signature], notices: list[str]) -> list[str]:
        folder = self._settings.attachments_folder
        if not folder:
            return []
        try:
            handle = open_folder(self._directory, Path(folder).parts)
        except FileNotFoundError:
            return []
        except OSError:
            self._tell(notices, folder, "it is a link or no folder", None)
            return []
        try:
            return list(self._changed(handle, seen, notices))
        finally:
            os.close(handle)

    def _changed(
        self, handle: int, seen: dict[str, Signature], notices: list[str]
    ) -> Iterator[str]:
        limit = self._settings.file_bytes
        for count, (name, info) in enumerate(files_below(handle)):
            version = signature(info)
            if count == MOST:
                why = f"it has more than {MOST} files; the others were left out"
                self._tell(notices, self._settings.attachments_folder, why, None)
            elif stat.S_ISLNK(info.st_mode):
                self._tell(notices, name, "it is a link", version)
            elif stat.S_ISREG(info.st_mode) and self._seen.get(name) != version:
                seen[name] = version
                if info.st_size > limit:
                    why = f"it is larger than {limit} bytes (DAGGER_KERNEL_FILE_BYTES)"
                    self._tell(notices, name, why, version)
                else:
                    yield name

    def _opened(
        self, names: list[str], attached: list[Given], seen: dict[str, Signature]
    ) -> Iterator[Given]:
        folder = Path(self._settings.attachments_folder).parts
        for name in names:
            *folders, last = name.split("/")
            try:
                handle = open_folder(self._directory, (*folder, *folders))
                try:
                    stream = open_file(handle, last)
                finally:
                    os.close(handle)
            except OSError:
                seen.pop(name)  # gone, or not readable: looked at again before the next cell
                continue
            with stream:
                yield Given(name, stream, FOLDER_ORIGIN, folders=True)
        yield from attached

    # -- the cells

    def _new_in_cells(self, seen: dict[str, Signature]) -> list[Given]:
        if not self._notebook:
            return []
        key = f"\0{self._notebook}"  # no file in the folder has this name
        try:
            handle = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                info = os.stat(self._notebook, dir_fd=handle, follow_symlinks=False)
                version = signature(info)
                if self._seen.get(key) == version or info.st_size > NOTEBOOK_BYTES:
                    return []
                with open_file(handle, self._notebook) as file:
                    text = file.read(NOTEBOOK_BYTES)
            finally:
                os.close(handle)
        except OSError:
            return []
        seen[key] = version
        new = []
        for given in attachments_of(text):
            assert isinstance(given.content, bytes)
            name = f"\0{given.origin}\0{given.name}"
            digest = int(hashlib.sha256(given.content).hexdigest()[:16], 16)
            if self._seen.get(name) != (digest, 0, 0, 0):
                seen[name] = (digest, 0, 0, 0)
                new.append(given)
        return new


def signature(info: os.stat_result) -> Signature:
    """Return what changes when a file is written or replaced."""
    return (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def attachments_of(text: bytes) -> list[Given]:
    """Return the files attached to the cells of a notebook; nothing of what is no notebook."""
    if b'"attachments"' not in text:
        return []
    try:
        cells = json.loads(text)["cells"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    found = []
    for number, cell in enumerate(cells if isinstance(cells, list) else []):
        attachments = cell.get("attachments") if isinstance(cell, dict) else None
        if not isinstance(attachments, dict):
            continue
        origin = f"cell {cell.get('id', number)}"
        for name, bundle in attachments.items():
            data = _bytes_of(bundle)
            if data is not None:
                found.append(Given(str(name), data, origin))
    return found


def _bytes_of(bundle: Any) -> bytes | None:
    """Return the bytes of an attachment: base64, but what came from an open text file may be its text."""
    if not isinstance(bundle, dict) or not bundle:
        return None
    mime, value = next(iter(bundle.items()))
    if isinstance(value, list):
        value = "".join(str(line) for line in value)
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "replace")
    decode = partial(base64.b64decode, validate=True)
    try:
        data = decode("".join(value.split()))
    except (binascii.Error, ValueError):
        return value.encode("utf-8", "replace")
    if str(mime).startswith("text/"):
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return value.encode("utf-8", "replace")  # a text that happens to look like base64
    return data

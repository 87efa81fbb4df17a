"""Several files, or a directory of a state, in one ZIP archive."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
import zipfile
from typing import TYPE_CHECKING, BinaryIO

from .service import Stored

if TYPE_CHECKING:
    from ..steps import Step
    from .service import SandboxService
    from .states import StateFiles

MOST_FILES = 10_000  # and directories
MOST_BYTES = 2 << 30
"""Of a directory in one archive."""

_STORED = (".gz", ".jpg", ".jpeg", ".parquet", ".png", ".xlsx", ".zip", ".zst")


class TooLargeError(Exception):
    """A directory has too much for one archive."""


def write_archive(
    service: SandboxService, owner: str, sandbox_id: str, wanted: list[tuple[str, str]]
) -> tuple[BinaryIO, int]:
    """Write an archive to a temporary file and return it with its size.

    Parameters
    ----------
    service, owner, sandbox_id
        Where the files come from.
    wanted
        Step and path of each; empty: the newest version of every result.
    """
    files = [service.find(owner, sandbox_id, name, path) for name, path in wanted]
    if not wanted:
        newest: dict[str, Stored] = {}
        for item in service.artifacts(owner, sandbox_id):
            newest.pop(item["path"], None)
            if item["role"] == "export":
                newest[item["path"]] = Stored(
                    item["path"], item["blob"], item["size"], item["mime"]
                )
        files = list(newest.values())
    archive = tempfile.TemporaryFile()  # noqa: SIM115  (the handler closes it)
    try:
        names: set[str] = set()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
            for stored in files:
                info = _info(_unique(stored.path, names), 0o644)
                with (
                    service.open_blob(stored.blob) as source,
                    bundle.open(info, "w", force_zip64=stored.size > 1 << 31) as target,
                ):
                    shutil.copyfileobj(source, target, 1 << 20)
        size = archive.tell()
    except BaseException:
        archive.close()
        raise
    return archive, size


async def write_directory(states: StateFiles, step: Step, path: str) -> tuple[BinaryIO, int]:
    """Write what is below a directory of a state to a temporary file and return it with its size.

    Hidden files, such as the Python environment, are left out, as they are from exports; so are links and
    special files.

    Raises
    ------
    FileNotFoundError
    KeyError
        The engine does not hold the state.
    TooLargeError
    EngineError
    """
    infos = await states.below(step, path, MOST_FILES)
    files = [info for info in infos if info.kind == "file"]
    folders = [info for info in infos if info.kind == "directory"]
    if len(infos) > MOST_FILES or sum(info.size for info in files) > MOST_BYTES:
        raise TooLargeError
    top = path.rpartition("/")[0]
    archive = tempfile.TemporaryFile()  # noqa: SIM115  (the handler closes it)
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
            for folder in folders:
                bundle.writestr(_info(_shown(folder.path, top) + "/", 0o755), b"")
            for file in files:
                info = _info(_shown(file.path, top), file.mode & 0o777 or 0o644)
                with bundle.open(info, "w", force_zip64=file.size > 1 << 31) as target:
                    async for chunk in states.read(step, file.path, 0, file.size):
                        await asyncio.to_thread(target.write, chunk)
        size = archive.tell()
    except BaseException:
        archive.close()
        raise
    return archive, size


def _info(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.external_attr = (mode | (stat.S_IFDIR if name.endswith("/") else stat.S_IFREG)) << 16
    packed = name.lower().endswith(_STORED)
    info.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
    return info


def _shown(path: str, top: str) -> str:
    path = path.removeprefix(f"{top}/") if top else path
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _unique(path: str, names: set[str]) -> str:
    """Return a name that the archive has not yet; two steps may have made the same path."""
    path = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    stem, extension = os.path.splitext(path)
    name, count = path, 1
    while name in names:
        count += 1
        name = f"{stem} ({count}){extension}"
    names.add(name)
    return name

"""Several files in one ZIP archive."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from typing import TYPE_CHECKING, BinaryIO

from .service import Stored

if TYPE_CHECKING:
    from .service import SandboxService

_STORED = (".gz", ".jpg", ".jpeg", ".parquet", ".png", ".xlsx", ".zip", ".zst")


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
                info = zipfile.ZipInfo(_unique(stored.path, names), (1980, 1, 1, 0, 0, 0))
                info.external_attr = 0o644 << 16
                packed = stored.path.lower().endswith(_STORED)
                info.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
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

"""Skills: folders of the administrator's that every sandbox finds at ``/skills/NAME``.

What is mounted is a copy in the blob store, named by its content: the log pins the version, and a replay finds it
when the folder has changed or is gone.
"""

from __future__ import annotations

import os
import re
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

from ..errors import SkillError
from ..log import BlobStore
from ..settings import Settings
from ..steps import Language, Limits
from .cell import Cell

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
REQUIREMENTS = "requirements.txt"
MOST_BYTES = 256 << 20
MOST_FILES = 10_000
WHEN = 315_532_800
"""The time of every file, the first that a ZIP file can say: a version is its content."""
INSTALL_CPU_SECONDS, INSTALL_WALL_SECONDS = 600.0, 900.0


@dataclass(frozen=True, slots=True)
class Skill:
    """One version of a skill, in the blob store.

    Attributes
    ----------
    name
        Of the folder, and of its place below ``/skills``.
    digest
        Of the content.
    files, size
        How much it is.
    requirements
        Whether it has a ``requirements.txt``.
    """

    name: str
    digest: str
    files: int
    size: int
    requirements: bool

    def payload(self) -> dict[str, object]:
        """Return what a ``mount`` step says."""
        return {"name": self.name, "digest": self.digest, "files": self.files, "size": self.size}

    def installing(self, limits: Limits) -> Cell:
        """Return the cell that installs what it requires."""
        return Cell(
            source=f"uv pip install --requirement /skills/{self.name}/{REQUIREMENTS}",
            language=Language.BASH,
            execution_count=0,
            store_history=False,
            limits=replace(
                limits, cpu_seconds=INSTALL_CPU_SECONDS, wall_seconds=INSTALL_WALL_SECONDS
            ),
            skill=self.name,
        )


def configured(settings: Settings) -> dict[str, Path]:
    """Return the folders that the setting ``skills`` names, by the skills' names, in order."""
    folders = [Path(path).expanduser() for path in settings.skills.split(os.pathsep) if path]
    return {folder.name: folder for folder in folders}


def store(blobs: BlobStore, name: str, folder: Path) -> Skill:
    """Copy a skill's folder into the blob store.

    Hidden files, byte code and links stay behind.

    Raises
    ------
    SkillError
        There is no such folder, its name cannot be used, or it is too large.
    StorageFullError, LogUnavailableError
    """
    if not NAME.fullmatch(name):
        raise SkillError(name, "its folder's name may have letters, digits, '.', '_' and '-' only")
    if not folder.is_dir():
        raise SkillError(name, f"there is no folder {str(folder)!r}")
    with tempfile.SpooledTemporaryFile(max_size=16 << 20) as spool:
        try:
            files, size, requirements = _pack(cast(BinaryIO, spool), name, folder)
        except OSError as error:
            raise SkillError(name, f"it cannot be read ({error.strerror})") from error
        spool.seek(0)
        return Skill(name, blobs.put(cast(BinaryIO, spool)), files, size, requirements)


def _pack(out: BinaryIO, name: str, folder: Path) -> tuple[int, int, bool]:
    """Write a folder as an archive whose bytes depend on its content alone."""
    count, size, requirements = 0, 0, False
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(_member(f"skills/{name}", tarfile.DIRTYPE, 0o755))
        for path in _contents(folder):
            inside = path.relative_to(folder).as_posix()
            if path.is_dir():
                tar.addfile(_member(f"skills/{name}/{inside}", tarfile.DIRTYPE, 0o755))
                continue
            with path.open("rb") as file:
                info = os.fstat(file.fileno())
                mode = 0o755 if info.st_mode & 0o100 else 0o644
                member = _member(f"skills/{name}/{inside}", tarfile.REGTYPE, mode)
                member.size = info.st_size
                count, size = count + 1, size + info.st_size
                if count > MOST_FILES or size > MOST_BYTES:
                    raise SkillError(
                        name, f"it has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB"
                    )
                tar.addfile(member, file)
            requirements = requirements or inside == REQUIREMENTS
    return count, size, requirements


def _member(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime = kind, mode, WHEN
    return member


def _contents(folder: Path) -> Iterator[Path]:
    """Yield folders and regular files, sorted; a folder before what is in it."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__" or path.is_symlink():
            continue
        if path.is_dir():
            yield path
            yield from _contents(path)
        elif path.is_file():
            yield path

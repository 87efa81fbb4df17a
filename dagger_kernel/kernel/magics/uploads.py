"""``%sandbox upload``: files of this machine, from the notebook's folder, into ``attachments/``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import SandboxPathError
from ...sandbox import Given, HostFile, HostFolders
from ...settings import Settings
from ..text import human_size, one_line
from .context import Context
from .parse import UsageError

SHOWN = 20


async def upload(context: Context, words: list[str]) -> None:
    """Put files, folders and what patterns match into the sandbox, as one step before the next cell."""
    if not words:
        raise UsageError("%sandbox upload needs a path, relative to the notebook's folder.")
    session = await context.holder.get()
    settings = session.settings
    found, problems = _find(_folders(settings), words, settings.file_bytes)
    lost: list[str] = []
    done = await session.upload(_opened(found, lost), reuse_equal=True)
    problems += [f"{one_line(name)}: {why}" for name, why in done.skipped.items()] + lost
    for problem in problems:
        context.output.stream("stderr", f"[dagger_kernel] not uploaded: {problem}\n")
    if not done.placed:
        raise UsageError("Nothing was uploaded.")
    for _, path in done.placed[:SHOWN]:
        context.print(one_line(path))
    if len(done.placed) > SHOWN:
        context.print(f"... and {len(done.placed) - SHOWN} more")


def _folders(settings: Settings) -> HostFolders:
    others = [Path(path) for path in settings.upload_folders.split(os.pathsep) if path]
    return HostFolders(Path.cwd(), others, closed=settings.data_path)


def _find(
    folders: HostFolders, words: Sequence[str], limit: int
) -> tuple[list[HostFile], list[str]]:
    found: list[HostFile] = []
    problems: list[str] = []
    for word in words:
        shown = one_line(word)
        try:
            files = folders.find(word)
        except SandboxPathError as error:
            problems.append(f"{shown}: {error.why}")
            continue
        except OSError as error:
            problems.append(f"{shown}: {error.strerror or error}")
            continue
        if not files:
            problems.append(f"{shown}: the folder has no file to give")
        for file in files:
            if file.size > limit:
                size, most = human_size(file.size), human_size(limit)
                problems.append(
                    f"{one_line(file.name)}: it has {size}, the limit is {most} "
                    "(DAGGER_KERNEL_FILE_BYTES)"
                )
            else:
                found.append(file)
    return found, problems


def _opened(files: Sequence[HostFile], lost: list[str]) -> Iterator[Given]:
    """Open the files as the log takes them; note those that cannot be read."""
    for file in files:
        try:
            stream = file.open()
        except OSError as error:
            lost.append(f"{one_line(file.name)}: {error.strerror or error}")
            continue
        with stream:
            yield Given(file.name, stream, folders=True)

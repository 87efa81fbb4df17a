"""``dagger-kernel gc``: remove what the log can bring back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dagger_kernel.settings import Settings

from . import output
from .data import log_exists, opened_log


def run(*, as_json: bool) -> None:
    """Remove layers, bases, and blobs that no row of the log names; say how much space came back.

    A kernel that runs meanwhile replays what it misses.
    """
    settings = Settings.load()
    removed = {path.name: _remove(path) for path in (settings.layers_path, settings.bases_path)}
    if log_exists(settings):
        with opened_log(settings) as store:
            removed["blobs"] = store.collect_blobs().size
    if as_json:
        output.print_json({"removed_bytes": removed})
        return
    for name, size in removed.items():
        print(f"Removed {output.human_size(size)} of {name}")


def _remove(path: Path) -> int:
    """Remove a directory; return its size on disk, in bytes."""
    if path.is_symlink():
        path.unlink()  # what it leads to is not ours
        return 0
    if not path.is_dir():
        return 0
    size = 0
    for folder, _folders, files in os.walk(path):
        # Overlay layers hold directories that their owner may not enter; we own them.
        os.chmod(folder, 0o700)
        for name in files:
            try:
                size += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    shutil.rmtree(path, ignore_errors=True)
    return size

"""``dagger-kernel gc``: remove what the log can bring back."""

from __future__ import annotations

from pathlib import Path

from dagger_kernel.engines.local.trees import remove, usage
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
    # By descriptors: a cell that runs may put a link in a directory's place at any moment.
    size = usage(path)
    remove(path)
    return size

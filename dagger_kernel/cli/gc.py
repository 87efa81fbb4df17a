"""``dagger-kernel gc``: remove what the log can bring back, and what nothing needs."""

from __future__ import annotations

from dataclasses import asdict

from dagger_kernel.engines.known import remembered
from dagger_kernel.engines.local.bases import Bases
from dagger_kernel.engines.local.collector import Freed, LayerCollector, collect_bases
from dagger_kernel.engines.local.layers import LayerStore
from dagger_kernel.log import open_blobs
from dagger_kernel.settings import Settings, parse

from . import output
from .data import log_exists, opened_log

NAMES = {"layers": "layer", "bases": "base", "blobs": "stored file"}


def run(*, keep: str | None, as_json: bool) -> None:
    """Remove layers, bases, and blobs that nothing refers to; say how much space came back.

    What a running cell or a waiting room of any process stands on stays.
    """
    settings = Settings.load()
    most = parse("cache_bytes", keep) if keep is not None else 0
    bases = Bases(settings, open_blobs(settings))
    freed = {"layers": LayerCollector(LayerStore(settings.layers_path)).collect(most)}
    if keep is None:
        freed["bases"] = collect_bases(bases)
    if log_exists(settings):
        with opened_log(settings) as store:
            blobs = store.collect_blobs(keep=remembered(settings))
        freed["blobs"] = Freed(blobs.blobs, blobs.size)
    if as_json:
        output.print_json({"removed": {name: asdict(item) for name, item in freed.items()}})
        return
    for name, item in freed.items():
        plural = "" if item.count == 1 else "s"
        print(f"Removed {item.count} {NAMES[name]}{plural}: {output.human_size(item.size)}")

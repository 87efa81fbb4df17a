"""Uploads that follow each other are put in at once: a thousand files that came one by one are one layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .base import ChainStep, PutFile


def folded(
    chain: Sequence[ChainStep], *, every: int = 0, most_bytes: int = 0
) -> list[tuple[int, ChainStep]]:
    """Return a chain's steps with their positions (from 1), neighbouring uploads as one.

    The states between them are not made; whoever asks for one has a chain that ends there. What the
    beginning of a chain becomes does not depend on what follows once another kind of step does, so the
    cache of an engine may go by it.

    Parameters
    ----------
    every
        Uploads are not joined over a multiple of this position. 0: everywhere.
    most_bytes
        Nothing is joined to uploads of more than this. 0: to all.
    """
    groups: list[list[tuple[int, ChainStep]]] = []
    size = 0
    for position, step in enumerate(chain, 1):
        full = most_bytes and size > most_bytes
        border = every and (position - 1) % every == 0
        before = groups[-1][-1][1].kind if groups else ""
        if not before == step.kind == "upload" or full or border:
            groups.append([])
            size = 0
        groups[-1].append((position, step))
        size += sum(item.size for item in step.files)
    return [(group[-1][0], _joined([step for _, step in group])) for group in groups]


def _joined(steps: list[ChainStep]) -> ChainStep:
    if len(steps) == 1:
        return steps[0]
    # Of one path the latest version.
    files: dict[str, PutFile] = {item.path: item for step in steps for item in step.files}
    return replace(steps[-1], files=tuple(files.values()))

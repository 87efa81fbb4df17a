"""From steps to container operations: pure, so that every kernel builds the same chain.

Whatever is written here is what the engine caches by. A cell is its nonce on its parent; source, limits and
answers travel over the link. So do the files of an upload and a stored layer difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base import ChainStep
from . import dress

if TYPE_CHECKING:
    import dagger

LINK = "/run/dagger-kernel.sock"
"""Where the socket is inside."""
OTHER = "/mnt/dagger-kernel-state"
"""Where another state is mounted while it is mirrored or compared."""
FLATTEN_EVERY = 200
"""Position in the chain whose state is made one layer again: 500 layers cannot be mounted."""
SYNC_EVERY = 50
"""Steps evaluated by one query: deep queries are slow, and very deep ones fail."""

FOLD_BYTES = 32 << 20
"""Uploads that follow each other are one exec up to about this size. Part of what the engine caches by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What steps are built with, in one session.

    Attributes
    ----------
    root
        The container of position 0, the link mounted.
    python
        The base's own interpreter.
    """

    root: dagger.Container
    python: str

    @classmethod
    def on(cls, base: dagger.Container, socket: dagger.Socket, python: str) -> Ground:
        """Return the ground on a base.

        The link is mounted here, once: its path is the same text in every kernel, and mounting it for each
        step made the replay of cached steps three times as dear.
        """
        return cls(root=base.with_unix_socket(LINK, socket, owner=dress.USER), python=python)

    def inside(self, command: str, *arguments: str) -> list[str]:
        """Return the command line of a trusted helper; run it as root."""
        return dress.inside_command(self.python, command, *arguments)

    def with_cell(self, container: dagger.Container, nonce: str) -> dagger.Container:
        """Run a cell: the runner waits at the link for its step."""
        return container.with_exec(dress.runner_command(LINK, nonce))

    def with_delivery(
        self, container: dagger.Container, command: str, nonce: str
    ) -> dagger.Container:
        """Put files in, or apply a layer difference: one layer, its content comes over the link."""
        return (
            container.with_user(dress.ROOT)
            .with_exec(self.inside(command, LINK, nonce))
            .with_user(dress.USER)
        )

    def with_step(self, container: dagger.Container, step: ChainStep) -> dagger.Container:
        """Add a step of a chain."""
        if step.kind == "cell":
            return self.with_cell(container, step.nonce)
        if step.kind == "upload":
            return self.with_delivery(container, "put", step.nonce)
        if step.kind == "mount":
            return self.with_delivery(container, "mount", step.nonce)
        if step.layer is not None:
            return self.with_delivery(container, "unpack", step.nonce)
        return container

    def settled(self, container: dagger.Container, position: int) -> dagger.Container:
        """Return the state of a position after its step: at some positions one layer on the root."""
        if position % FLATTEN_EVERY:
            return container
        return (
            self.root.with_user(dress.ROOT)
            .with_mounted_directory(OTHER, container.rootfs())
            .with_exec(self.inside("mirror", OTHER))
            .without_mount(OTHER)
            .with_user(dress.USER)
        )

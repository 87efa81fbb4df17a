"""The log: what happened, in a SQL database, append-only; and the bytes it refers to.

The only truth of the package: containers, layers and caches are made again from it.
`open_log` gives a `LogStore`; everything else here is its inside.
"""

from .blobs import BlobStore, open_blobs
from .locks import SandboxLock
from .rows import Artifact, SandboxRow
from .slots import Slots, Ticket
from .store import LogStore, open_log

__all__ = [
    "Artifact",
    "BlobStore",
    "LogStore",
    "SandboxLock",
    "SandboxRow",
    "Slots",
    "Ticket",
    "open_blobs",
    "open_log",
]

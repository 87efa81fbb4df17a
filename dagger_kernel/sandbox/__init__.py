"""The use cases: run a step, upload, rewind, fork, verify, diff, export.

Knows the log and the engines; imports nothing of Jupyter.
"""

from .cell import (
    Cell,
    CellResult,
    ExportedFile,
    InterruptedByUser,
    SilentListener,
    StepListener,
)
from .session import SandboxSession, run_source

__all__ = [
    "Cell",
    "CellResult",
    "ExportedFile",
    "InterruptedByUser",
    "SandboxSession",
    "SilentListener",
    "StepListener",
    "run_source",
]

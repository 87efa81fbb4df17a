"""The use cases: run a step, upload, rewind, fork, verify, diff, export.

Knows the log and the engines; imports nothing of Jupyter.
"""

from .api import AsyncSandbox, Sandbox
from .cell import (
    Cell,
    CellResult,
    ExportedFile,
    InterruptedByUser,
    SilentListener,
    StepListener,
)
from .execution import Execution
from .history import fork, rewind
from .session import SandboxSession, run_source
from .uploads import Uploaded, upload_files

__all__ = [
    "AsyncSandbox",
    "Cell",
    "CellResult",
    "Execution",
    "ExportedFile",
    "InterruptedByUser",
    "Sandbox",
    "SandboxSession",
    "SilentListener",
    "StepListener",
    "Uploaded",
    "fork",
    "rewind",
    "run_source",
    "upload_files",
]

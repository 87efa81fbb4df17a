"""The use cases: run a step, upload, rewind, fork, verify, diff, export.

Knows the log and the engines; imports nothing of Jupyter.
"""

from .api import AsyncSandbox, Sandbox
from .attachments import Attachments
from .beside import Beside
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
from .hostfiles import HostFile, HostFolders
from .session import SandboxSession, run_source
from .uploads import Given, Uploaded, upload_files

__all__ = [
    "AsyncSandbox",
    "Attachments",
    "Beside",
    "Cell",
    "CellResult",
    "Execution",
    "ExportedFile",
    "Given",
    "HostFile",
    "HostFolders",
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

"""The REST API under ``/dagger-kernel/api``; `openapi` describes it.

Each method is authenticated, authorised (reading: action ``read``; everything that changes
something: action ``execute``) and answers only about sandboxes of the user who asks.
"""

from __future__ import annotations

from ..base import SandboxHandler
from ..routes import ROOT, SANDBOX, STEP
from .about import OpenApiHandler, StatusHandler
from .files import ArchiveHandler, ArtifactHandler, ArtifactsHandler, FilesHandler
from .sandboxes import (
    OneSandboxHandler,
    ReopenHandler,
    RestartHandler,
    RewindHandler,
    SandboxesHandler,
)
from .steps import CachedHandler, InheritedHandler, RestoreHandler, StepHandler, StepsHandler
from .uploads import UploadsHandler

HANDLERS: list[tuple[str, type[SandboxHandler]]] = [
    (ROOT + r"/sandboxes/?", SandboxesHandler),
    (SANDBOX + r"/?", OneSandboxHandler),
    (SANDBOX + r"/steps/?", StepsHandler),
    (SANDBOX + r"/inherited/?", InheritedHandler),
    (SANDBOX + r"/cached/?", CachedHandler),
    (SANDBOX + r"/steps/(?P<name>" + STEP + r")/?", StepHandler),
    (SANDBOX + r"/steps/(?P<name>" + STEP + r")/restore/?", RestoreHandler),
    (SANDBOX + r"/artifacts/?", ArtifactsHandler),
    (SANDBOX + r"/artifacts/(?P<name>" + STEP + r")/(?P<path>.+)", ArtifactHandler),
    (SANDBOX + r"/archive/?", ArchiveHandler),
    (SANDBOX + r"/files(?P<path>(?:/.*)?)", FilesHandler),
    (SANDBOX + r"/uploads/?", UploadsHandler),
    (SANDBOX + r"/restart-as-new/?", RestartHandler),
    (SANDBOX + r"/reopen/?", ReopenHandler),
    (SANDBOX + r"/rewind/?", RewindHandler),
    (ROOT + r"/status/?", StatusHandler),
    (ROOT + r"/openapi\.json", OpenApiHandler),
]

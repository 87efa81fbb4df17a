"""The Jupyter Server extension: the sandboxes' log and files over REST, for the panel and others."""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Name the extension. The application is imported only in the server."""
    from .app import DaggerKernelApp

    return [{"module": "dagger_kernel.server", "app": DaggerKernelApp}]

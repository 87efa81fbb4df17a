"""What the kernel and its sandbox use, for jupyter-resource-usage and for people."""

from __future__ import annotations

import os
import socket
from typing import Any

from ..sandbox import SandboxSession


def usage(session: SandboxSession | None) -> dict[str, Any]:
    """Return the content of a ``usage_reply``.

    Memory and CPU are those of the kernel process and everything below it: the embedded engine's
    rooms are its children. A Dagger engine's are not; the last step's figures are under
    ``dagger_kernel``.
    """
    content: dict[str, Any] = {
        "status": "ok",
        "hostname": socket.gethostname(),
        "pid": os.getpid(),
        "cpu_count": os.cpu_count(),
    }
    content.update(_processes())
    if session is not None:
        content["dagger_kernel"] = session.status()
    return content


def _processes() -> dict[str, Any]:
    try:
        import psutil  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return {}  # optional, as in ipykernel
    kernel = psutil.Process()
    memory, cpu = 0, 0.0
    for process in (kernel, *kernel.children(recursive=True)):
        try:
            memory += process.memory_info().rss
            cpu += process.cpu_percent()
        except psutil.Error:
            continue  # it ended meanwhile
    return {
        "kernel_cpu": cpu,
        "kernel_memory": memory,
        "host_cpu_percent": psutil.cpu_percent(),
        "host_virtual_memory": dict(psutil.virtual_memory()._asdict()),
    }

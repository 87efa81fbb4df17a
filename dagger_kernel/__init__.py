"""A Jupyter kernel whose notebook is a log. See ``docs/`` and the README.

``Sandbox`` and ``AsyncSandbox`` run cells without Jupyter; ``Execution`` is what they give back.
"""

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .errors import DaggerKernelError
    from .sandbox import AsyncSandbox, Execution, Sandbox
    from .settings import Settings
    from .steps import Limits

__all__ = [
    "AsyncSandbox",
    "DaggerKernelError",
    "Execution",
    "Limits",
    "Sandbox",
    "Settings",
    "__version__",
]

_HOMES = {
    "AsyncSandbox": "sandbox",
    "DaggerKernelError": "errors",
    "Execution": "sandbox",
    "Limits": "steps",
    "Sandbox": "sandbox",
    "Settings": "settings",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are used: the kernel's start stays short."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

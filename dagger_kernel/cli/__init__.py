"""The ``dagger-kernel`` command. See ``docs/cli.md``."""

from .main import main

__all__ = ["main"]

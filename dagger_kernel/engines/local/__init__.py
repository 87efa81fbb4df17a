"""The embedded engine: no daemon, no root. Start reading at `engine`."""

from .engine import LocalEngine

__all__ = ["LocalEngine"]

"""The production engine: steps as execs of a Dagger engine. Start reading at `engine`."""

from .engine import DaggerEngine

__all__ = ["DaggerEngine"]

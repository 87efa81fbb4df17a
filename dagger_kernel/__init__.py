"""A Jupyter kernel whose notebook is a log. See ``docs/`` and the README."""

from ._version import __version__

__all__ = ["__version__"]

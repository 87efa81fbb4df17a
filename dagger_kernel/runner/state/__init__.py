"""Variables which outlive their process.

Each cell runs in a new process. :class:`StateSession` makes the variables of
earlier cells appear in it, loaded when first used, and saves what may have
changed when the cell ends.
"""

from .errors import ManifestError, StateLostError
from .inspect import read_manifest
from .session import StateSession

__all__ = ["ManifestError", "StateLostError", "StateSession", "read_manifest"]

"""Variables which outlive their process.

Each cell runs in a new process. :class:`StateSession` makes the variables of
earlier cells appear in it, loaded when first used, and saves what may have
changed when the cell ends.
"""

from .errors import ManifestError, StateLostError
from .inspect import read_manifest
from .session import StateSession

__all__ = ["ManifestError", "StateLostError", "StateSession", "prime", "read_manifest"]


def prime() -> None:
    """Prepare a process which will be forked for many cells; changes nothing in it."""
    from importlib import import_module

    for name in ("deep", "memory", "reducers", "trial", "ambient.shell"):
        import_module(f"{__name__}.{name}")
    from .ambient.shell import prime as prime_shell
    from .modules import library_roots

    prime_shell()
    library_roots()

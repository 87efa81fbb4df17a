"""State which lives in the interpreter and in libraries, not in variables.

A seeded random stream, an option set in pandas or the working directory carry
on from cell to cell in a usual session, so they are state like any variable.
"""

from .base import Ambient, Provider

__all__ = ["Ambient", "Provider"]

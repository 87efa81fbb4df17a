"""``%sandbox`` and ``%%sandbox``: answered by the kernel, before the sandbox sees the cell."""

from .commands import run
from .context import Ask, Context
from .options import limits_of
from .parse import CellCall, LineCalls, UsageError, find

__all__ = ["Ask", "CellCall", "Context", "LineCalls", "UsageError", "find", "limits_of", "run"]

"""Exceptions as Python shows them, where IPython's own formatting would not do."""

from __future__ import annotations

import traceback
from typing import Any

from .mime import safe_text

MAX_CHAIN = 100
"""Causes that are followed: a chain may lead back to itself."""


def has_group(error: BaseException | None) -> bool:
    """Whether an exception, or one that led to it, is a group."""
    seen = 0
    while error is not None and seen < MAX_CHAIN:
        if isinstance(error, BaseExceptionGroup):
            return True
        error = error.__cause__ or error.__context__
        seen += 1
    return False


def native_lines(kind: Any, value: Any, trace: Any) -> list[str]:
    """Format an exception the way Python does, without IPython's own frames."""
    while trace is not None and "/IPython/" in trace.tb_frame.f_code.co_filename:
        trace = trace.tb_next
    try:
        return "".join(traceback.format_exception(kind, value, trace)).splitlines()
    except BaseException:
        return [f"{getattr(kind, '__name__', kind)}: {safe_text(value)}"]

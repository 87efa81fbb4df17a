"""Finds the kernel's magics in a cell."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from ...errors import DaggerKernelError
from ...steps import Language

NAME = "sandbox"
INSIDE = "recompute"
"""The command that the sandbox itself carries out, as a logged cell; it may stand among other code."""

LINE = re.compile(rf"%{NAME}(?:\s+(?P<rest>.*))?")
CELL = re.compile(rf"%%{NAME}(?:[ \t]+(?P<rest>.*))?")


class UsageError(DaggerKernelError):
    """A magic was called in a way it does not know."""

    default_kept = ""
    default_remedy = "`%sandbox help` lists what there is."


@dataclass(frozen=True)
class LineCalls:
    """A cell of nothing but ``%sandbox`` lines: the words of each."""

    calls: list[list[str]]


@dataclass(frozen=True)
class CellCall:
    """A cell under ``%%sandbox``: the words of the first line, and the code below it."""

    words: list[str]
    body: str


def find(code: str, language: Language) -> LineCalls | CellCall | None:
    """Return the kernel's magics of a cell, None if the cell is for the sandbox.

    Raises
    ------
    UsageError
        A ``%sandbox`` line other than ``%sandbox recompute`` stands among other code, or its quotes are
        unbalanced.
    """
    if f"%{NAME}" not in code:
        return None
    stripped = code.lstrip()
    first, _, body = stripped.partition("\n")
    if match := CELL.fullmatch(first.rstrip()):
        return CellCall(_words(match["rest"]), body)
    lines = [line.strip() for line in stripped.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    matches = [LINE.fullmatch(line) for line in lines]
    inside = [match and (match["rest"] or "").split()[:1] == [INSIDE] for match in matches]
    if language is Language.PYTHON and any(inside):
        if inside.count(True) == len(matches) - matches.count(None):
            return None
        raise UsageError(
            "%sandbox recompute cannot stand beside other %sandbox lines.", kept="Nothing was run."
        )
    if lines and all(matches):
        return LineCalls([_words(match["rest"]) for match in matches if match])
    if any(matches) and _is_magic(code, language):
        raise UsageError("%sandbox must stand alone in its cell.", kept="Nothing was run.")
    return None


def _words(text: str | None) -> list[str]:
    try:
        return shlex.split(text or "", comments=True)
    except ValueError as error:
        raise UsageError(f"The line cannot be read: {error}.") from None


def _is_magic(code: str, language: Language) -> bool:
    """Tell a magic from a line inside a string, the way IPython does."""
    if language is not Language.PYTHON:
        return True
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        plain = TransformerManager().transform_cell(code)
    except SyntaxError:
        return False  # the sandbox reports it
    return f"run_line_magic('{NAME}'" in plain

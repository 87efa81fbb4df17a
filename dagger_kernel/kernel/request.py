"""One ``execute_request``, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class BadRequestError(Exception):
    """A field of the request has a value the protocol does not know."""


@dataclass(frozen=True, kw_only=True)
class ExecuteRequest:
    """What a client asks to run.

    Attributes
    ----------
    silent
        No output, no history; the state does change.
    store_history
        Whether the counter moves. Never with ``silent``.
    cell_id
        JupyterLab's id of the notebook cell, if it sent one.
    """

    code: str
    silent: bool = False
    store_history: bool = True
    user_expressions: dict[str, str] = field(default_factory=dict)
    allow_stdin: bool = False
    stop_on_error: bool = True
    cell_id: str | None = None

    @property
    def blank(self) -> bool:
        """Whether there is nothing to run."""
        return not self.code.strip() and not self.user_expressions

    @classmethod
    def parse(cls, message: dict[str, Any]) -> ExecuteRequest:
        """Read a message; absent fields and a null metadata are tolerated, as unknown fields are.

        Raises
        ------
        BadRequestError
            There is no code, or a field has a wrong type.
        """
        content, metadata = message.get("content"), message.get("metadata")
        if not isinstance(content, dict) or not isinstance(content.get("code"), str):
            raise BadRequestError("An execute_request needs a text field named code.")
        expressions = content.get("user_expressions") or {}
        if not isinstance(expressions, dict) or not all(
            isinstance(text, str) for text in expressions.values()
        ):
            raise BadRequestError("user_expressions must map names to expressions (texts).")
        silent = bool(content.get("silent", False))
        cell_id = metadata.get("cellId") if isinstance(metadata, dict) else None
        return cls(
            code=content["code"],
            silent=silent,
            store_history=bool(content.get("store_history", not silent)) and not silent,
            user_expressions=expressions,
            allow_stdin=bool(content.get("allow_stdin", False)),
            stop_on_error=bool(content.get("stop_on_error", True)),
            cell_id=cell_id if isinstance(cell_id, str) else None,
        )

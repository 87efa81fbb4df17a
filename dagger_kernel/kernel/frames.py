"""Turns a running cell's frames into message contents. Frames are not trusted.

The runner lives beside the user's code. A frame it sends may be forged; here it can at most
become output of its own cell: never another kind of message, never a malformed one.
"""

from __future__ import annotations

import re
from typing import Any

from ..runner.protocol import THIS_CELL
from .comms import comm_content, split_buffers

MIME = re.compile(r"[\w\-+.]+/[\w\-+.]+")
COMM_KINDS = frozenset({"comm_open", "comm_msg", "comm_close"})
PAYLOAD_SOURCES = frozenset({"page", "set_next_input", "edit_magic", "ask_exit"})

Published = tuple[str, dict[str, Any], dict[str, Any], list[bytes]]
"""Message type, content, metadata and buffers."""


def message_of(
    head: dict[str, Any], body: bytes, number: int, request_id: str = ""
) -> Published | None:
    """Return what to publish for a frame of the cell that a request asked for, None for nothing.

    ``stream`` frames are not for this: their text is joined first (`CellOutput.stream`).
    """
    kind = head.get("type")
    if kind == "display":
        return _display(head)
    if kind == "result":
        content = {
            **_bundle(head),
            "execution_count": _positive(head.get("execution_count"), number),
        }
        return "execute_result", content, {}, []
    if kind == "clear":
        return "clear_output", {"wait": bool(head.get("wait"))}, {}, []
    if kind == "error":
        return "error", error_content(head), {}, []
    if kind == "comm" and head.get("msg_type") in COMM_KINDS:
        buffers = split_buffers(_positive(head.get("buffers"), 0), body)
        content = comm_content(head)
        state = content["data"].get("state")
        if isinstance(state, dict) and state.get("msg_id") == THIS_CELL:
            content["data"] = {**content["data"], "state": {**state, "msg_id": request_id}}
        return str(head["msg_type"]), content, _mapping(head.get("metadata")), buffers
    return None


def error_content(head: dict[str, Any]) -> dict[str, Any]:
    """Return the content of an ``error`` message."""
    traceback = head.get("traceback")
    return {
        "ename": str(head.get("ename") or "Error"),
        "evalue": str(head.get("evalue", "")),
        "traceback": [str(line) for line in traceback] if isinstance(traceback, list) else [],
    }


def expressions_of(value: Any) -> dict[str, Any]:
    """Return the ``user_expressions`` of a reply; a malformed entry becomes an error of its own."""
    return {str(name): _expression(item) for name, item in _mapping(value).items()}


def payload_of(value: Any) -> list[dict[str, Any]]:
    """Return the ``payload`` of a reply: the known kinds."""
    items = value if isinstance(value, list) else []
    return [
        item for item in items if isinstance(item, dict) and item.get("source") in PAYLOAD_SOURCES
    ]


def _display(head: dict[str, Any]) -> Published | None:
    display_id = _mapping(head.get("transient")).get("display_id")
    transient = {"display_id": str(display_id)} if display_id else {}
    content = {**_bundle(head), "transient": transient}
    if head.get("update"):
        return ("update_display_data", content, {}, []) if transient else None
    return "display_data", content, {}, []


def _bundle(head: dict[str, Any]) -> dict[str, Any]:
    data = {
        name: value for name, value in _mapping(head.get("data")).items() if MIME.fullmatch(name)
    }
    return {"data": data, "metadata": _mapping(head.get("metadata"))}


def _expression(item: Any) -> dict[str, Any]:
    item = _mapping(item)
    if item.get("status") == "ok":
        return {"status": "ok", **_bundle(item)}
    return {"status": "error", **error_content(item)}


def _mapping(value: Any) -> dict[str, Any]:
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else {}


def _positive(value: Any, default: int) -> int:
    good = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if good else default

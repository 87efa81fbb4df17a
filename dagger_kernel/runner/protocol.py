"""The link's wire format, and the list of its messages.

A frame is an 8-byte header (two big-endian 32-bit lengths: of the JSON head and of
the binary body), the head (ASCII JSON, an object with a ``type``) and the body.
The reading side trusts nothing: sizes are capped, a head must be an object.

Kernel to runner
----------------
``step``      everything the step needs: ``nonce, language, source, silent, store_history,
              execution_count, user_expressions, allow_stdin, limits, answers`` (a list on replay:
              recorded answers to ``input()``, None for a password; null on a live run), ``env``
              (secrets and settings for this run only), ``replay`` (bool), ``exports`` (``exclude``: a
              list of glob patterns)
``input``     ``value``: the answer to ``input_request``; or ``error``: the reason there is none
``interrupt`` a KeyboardInterrupt for the cell; the second one kills it
``comm``      ``msg_type, content, buffers`` (number of length-prefixed buffers in the body)
``ask``       ``id, kind, content``: ``complete`` (code, cursor_pos), ``inspect`` (code, cursor_pos,
              detail_level), ``is_complete`` (code), ``variables``; only before the step
``close``     before the step: none will come, exit with `EXIT_NO_STEP`, so that nothing is cached; after
              ``done``: it has arrived, exit

Runner to kernel
----------------
``hello``     ``nonce, protocol, python, pid``: the first frame
``stream``    ``name`` (stdout or stderr), ``text``
``display``   ``data, metadata, transient, update`` (bool): display_data or update_display_data
``result``    ``data, metadata, execution_count``: execute_result
``clear``     ``wait``
``error``     ``ename, evalue, traceback``; ``handled`` (true): the user's own handler has shown it, or not
``comm``      as above; `THIS_CELL` as the widget state's ``msg_id`` means the cell's request
``input_request``  ``prompt, password``
``file``      ``path, kind, size, mode, skipped``; body: the content (absent when skipped or deleted)
``overflow``  body: the whole text output of the cell, when it passed ``limits.output_bytes``
``progress``  ``text``: a short state of long work, replaced by the next one
``answer``    ``id, content``: the reply to ``ask``
``done``      the last frame: ``status`` (ok, error, interrupted, limit), ``reason``, ``exit_code``,
              ``usage``, ``state`` (the state report), ``user_expressions``, ``payloads``, ``truncated``,
              ``killed`` (names of processes ended with the cell), ``answers``
"""

from __future__ import annotations

import json
import struct
from typing import Any

PROTOCOL = 1
"""Version of this file's messages."""

EXIT_NO_STEP = 75
"""Exit code of a runner that got no step (EX_TEMPFAIL): its room must leave no layer."""

THIS_CELL = "dagger-kernel-this-cell"
"""Stands for the id of the cell's own request in what an ``Output`` widget tells the client."""

HEADER = struct.Struct("!II")
MAX_HEAD = 64 * 1024 * 1024
MAX_BODY = 256 * 1024 * 1024


class ProtocolError(Exception):
    """A frame does not follow this file."""


def encode(head: dict[str, Any], body: bytes | memoryview = b"") -> bytes:
    """Return one frame.

    The head is ASCII JSON: lone surrogates and NUL bytes travel escaped.
    """
    text = json.dumps(head, separators=(",", ":")).encode("ascii")
    return HEADER.pack(len(text), len(body)) + text + bytes(body)


def decode_head(text: bytes) -> dict[str, Any]:
    """Return the head of a frame.

    Raises
    ------
    ProtocolError
        It is not a JSON object with a ``type``.
    """
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("the head of a frame is not JSON") from error
    if not isinstance(head, dict) or not isinstance(head.get("type"), str):
        raise ProtocolError("the head of a frame is not an object with a type")
    return head


def decode_header(header: bytes) -> tuple[int, int]:
    """Return the lengths of head and body, in bytes.

    Raises
    ------
    ProtocolError
        A length is over its cap.
    """
    head, body = HEADER.unpack(header)
    if head > MAX_HEAD or body > MAX_BODY:
        raise ProtocolError(f"a frame of {head} + {body} bytes is too large")
    return head, body

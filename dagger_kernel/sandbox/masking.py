"""Masks secrets in what a cell says, before anybody hears it: clients and the log.

A value is found as it is, as the usual encodings write it (JSON and Python literals, URLs, HTML, base64, hexadecimal),
and split over pieces of a stream. A cell that wants to tell a secret can still do so in a thousand other ways.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"
LEAST = 8
"""Characters a value needs to be masked: a shorter one stands in ordinary text too often."""

Frame = tuple[dict[str, Any], bytes]


class Mask:
    """Finds some values in text. False if there are none that can be masked."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for form in _forms(value)}
        self._forms = sorted(forms, key=len, reverse=True)
        self._longest = max(map(len, forms), default=0)
        self._starts = {form[0] for form in forms}
        self._pattern = re.compile("|".join(map(re.escape, self._forms)))

    def __bool__(self) -> bool:
        return bool(self._forms)

    def text(self, text: str) -> str:
        """Return the text, masked."""
        return self._pattern.sub(MASK, text) if self._forms else text

    def bytes(self, data: bytes) -> bytes:
        """Return bytes that are mostly UTF-8 text, masked."""
        if not self._forms:
            return data
        text = data.decode("utf-8", "surrogateescape")
        return self.text(text).encode("utf-8", "surrogateescape")

    def json(self, value: Any) -> Any:
        """Return a JSON value with every text in it masked, names too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.json(name): self.json(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.json(item) for item in value]
        return value

    def open_end(self, text: str) -> int:
        """Return where the end of a text begins that more text could make a value of."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[start] in self._starts:
                rest = text[start:]
                if any(form.startswith(rest) for form in self._forms):
                    return start
        return len(text)


class MaskedFrames:
    """Masks the frames of one step. A stream's end that may be a value's beginning waits for more.

    Contents of exported files pass: they are data, and the layer has them as they are.
    """

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self._waiting: dict[str, str] = {}

    def take(self, head: dict[str, Any], body: bytes) -> Iterator[Frame]:
        """Yield what may be heard after a frame."""
        kind = head["type"]
        if not self.mask or kind in ("file", "progress"):
            yield head, body
        elif kind == "stream":
            name = str(head.get("name", "stdout"))
            text = self.mask.text(self._waiting.pop(name, "") + str(head.get("text", "")))
            end = self.mask.open_end(text)
            if text[end:]:
                self._waiting[name] = text[end:]
            if text[:end]:
                yield {**head, "text": text[:end]}, body
        else:
            yield from self.rest()
            body = self.mask.bytes(body) if kind == "overflow" else body
            yield {**self.mask.json(head), "type": kind}, body

    def rest(self) -> Iterator[Frame]:
        """Yield what waited: nothing completes it any more."""
        waiting, self._waiting = self._waiting, {}
        for name, text in waiting.items():
            yield {"type": "stream", "name": name, "text": text}, b""


def _forms(value: str) -> Iterator[str]:
    """Yield the ways in which a value is usually written."""
    if len(value) < LEAST:
        return
    yield value
    # A key of several lines is mostly shown a line at a time.
    yield from (line for line in value.split("\n") if len(line.strip()) >= LEAST)
    data = value.encode("utf-8", "surrogateescape")
    written = [
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        html.escape(value),
        quote(data, safe=""),
        quote(data),
        quote_plus(data),
        data.hex(),
    ]
    # Percent codes are written with small letters too.
    written += [re.sub("%..", lambda code: code[0].lower(), text) for text in written[4:7]]
    yield from (text for text in written if len(text) >= LEAST)
    yield from _base64(data)


def _base64(data: bytes) -> Iterator[str]:
    """Yield what base64 makes of the value wherever in longer data it stands (``user:password``)."""
    for before in range(3):
        # The digits that other bytes have a part in are left out.
        first = (0, 2, 3)[before]
        last = (before + len(data)) * 8 // 6
        text = base64.b64encode(b"\0" * before + data + b"\0\0").decode("ascii")[first:last]
        if len(text) >= LEAST:
            yield text
            yield text.translate({ord("+"): "-", ord("/"): "_"})

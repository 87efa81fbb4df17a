"""Masks secrets in what a cell says, before anybody hears it: clients and the log.

A value is found as it is, as the usual encodings write it (JSON and Python literals, URLs, HTML, base64, hexadecimal),
and split over pieces of a stream. A cell that wants to tell a secret can still do so in a thousand other ways.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"
LEAST = 8
"""Characters a value needs to be masked: a shorter one stands in ordinary text too often."""

SURE = 4
"""Characters of a value's beginning that are hardly a coincidence: they wait for the rest whatever comes between."""

BETWEEN = " :\r\n"
"""What stands between digits: base64 is broken into lines, hexadecimal into bytes."""

Frame = tuple[dict[str, Any], bytes]


class _Finder:
    """Finds some texts in others, also with some characters ``between`` theirs."""

    def __init__(self, forms: Iterable[str], between: str = "") -> None:
        self._forms = sorted(set(forms), key=len, reverse=True)
        self._between = between
        self._longest = max(map(len, self._forms), default=0)
        # A look at a few characters spares most comparisons. Fewer of them stand only at a text's end.
        self._starts = {form[:count] for form in self._forms for count in range(1, SURE + 1)}
        self._pattern = re.compile("|".join(map(re.escape, self._forms)) or r"(?!)")

    def __bool__(self) -> bool:
        return bool(self._forms)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the texts stand."""
        bare = self._bare(text)
        found = [match.span() for match in self._pattern.finditer(bare)]
        if not found or len(bare) == len(text):
            return found
        places = [place for place, char in enumerate(text) if char not in self._between]
        return [(places[start], places[end - 1] + 1) for start, end in found]

    def open_end(self, text: str) -> int:
        """Return where the end of a text begins that more text could make one of."""
        # What stands between does not fill the window: it is made of what is left without it.
        bare = self._bare(text)
        for start in range(max(0, len(bare) - self._longest + 1), len(bare)):
            if bare[start : start + SURE] in self._starts:
                rest = bare[start:]
                if any(form.startswith(rest) for form in self._forms):
                    return self._place(text, len(rest))
        return len(text)

    def _bare(self, text: str) -> str:
        for char in self._between:
            text = text.replace(char, "")
        return text

    def _place(self, text: str, count: int) -> int:
        """Return where the last characters begin, not counting those between."""
        place = len(text)
        while count:
            place -= 1
            count -= text[place] not in self._between
        return place


class Mask:
    """Finds some values in text. False if there are none that can be masked."""

    def __init__(self, values: Iterable[str]) -> None:
        values = [value for value in values if len(value) >= LEAST]
        self._finders = (
            _Finder(form for value in values for form in _forms(value)),
            _Finder((form for value in values for form in _digits(value)), BETWEEN),
        )

    def __bool__(self) -> bool:
        return any(self._finders)

    def text(self, text: str) -> str:
        """Return the text, masked."""
        return self.piece(text, whole=True)[0]

    def piece(self, text: str, said: int = 0, *, whole: bool = False) -> tuple[str, int]:
        """Mask a piece of a longer text.

        Parameters
        ----------
        said
            Characters at its beginning that have been heard, because nobody knew what they would be.
        whole
            Nothing follows.

        Returns
        -------
        str
            What may be heard now: up to an end that more text could make a value of.
        int
            Where that end begins.
        """
        if not self:
            return text[said:], len(text)
        heard, done = [], 0
        for start, end in sorted(span for finder in self._finders for span in finder.spans(text)):
            if end > max(done, said):
                heard += [text[max(done, said) : start], MASK]
            done = max(done, end)
        last = len(text) if whole else min(finder.open_end(text) for finder in self._finders)
        last = max(done, last)
        return "".join(heard) + text[max(done, said) : last], last

    def bytes(self, data: bytes) -> bytes:
        """Return bytes that are mostly UTF-8 text, masked."""
        if not self:
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


class MaskedFrames:
    """Masks the frames of one step. A stream's end that may be a value's beginning waits for more.

    Where it may well be a coincidence and waiting would show, it is heard at once: what then makes it a value is masked.
    Contents of exported files pass: they are data, and the layer has them as they are.
    """

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self._open: dict[str, tuple[str, int]] = {}
        """The open end of each stream, and how much of it has been heard."""

    def take(self, head: dict[str, Any], body: bytes) -> Iterator[Frame]:
        """Yield what may be heard after a frame."""
        kind = head["type"]
        if not self.mask or kind in ("file", "progress"):
            yield head, body
        elif kind == "stream":
            name = str(head.get("name", "stdout"))
            before, said = self._open.get(name, ("", 0))
            text = before + str(head.get("text", ""))
            heard, start = self.mask.piece(text, said)
            end, said = text[start:], max(0, said - start)
            if end[-1:] in BETWEEN and len(end.strip(BETWEEN)) < SURE:
                # The end of a line or word: seldom in the middle of a value.
                heard, said = heard + end[said:], len(end)
            self._open[name] = end, said
            if heard:
                yield {**head, "text": heard}, body
        else:
            yield from self._let_go(SURE)
            body = self.mask.bytes(body) if kind == "overflow" else body
            yield {**self.mask.json(head), "type": kind}, body

    def rest(self) -> Iterator[Frame]:
        """Yield what waited: the cell has ended, or waits itself."""
        yield from self._let_go()

    def _let_go(self, shorter: float = math.inf) -> Iterator[Frame]:
        for name, (end, said) in self._open.items():
            if said < len(end) < shorter:
                self._open[name] = end, len(end)
                yield {"type": "stream", "name": name, "text": end[said:]}, b""


def _forms(value: str) -> Iterator[str]:
    """Yield the ways in which a value is usually written, but in digits."""
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
    ]
    # Percent codes are written with small letters too.
    written += [re.sub("%..", lambda code: code[0].lower(), text) for text in written[4:7]]
    yield from (text for text in written if len(text) >= LEAST)


def _digits(value: str) -> Iterator[str]:
    """Yield a value in hexadecimal and base64."""
    data = value.encode("utf-8", "surrogateescape")
    yield from (data.hex(), data.hex().upper())
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

"""The text a cell prints, on its way to the link: decoded, gathered, cut."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable
from typing import Any

CHUNK = 1 << 16
DISPLAYS = 4
"""A cell's displays together may take this many times the size of one file."""

MAX_ERRORS = 50

CLEAR = re.compile(r"\x1b\[H\x1b\[2?J(?:\x1b\[3J)?")
"""What the command ``clear`` writes."""

Emit = Callable[[dict[str, Any], bytes], None]


class Output:
    """Everything one cell shows.

    Parameters
    ----------
    emit
        Takes the frames.
    limits
        ``output_bytes``: bytes of text that reach the client, then a marker is shown instead;
        ``kept_output_bytes``: bytes of text that are kept for the whole text, should there be a marker;
        ``file_bytes``: other forms of displays are limited to `DISPLAYS` times this.
    screen
        Whether text that clears a terminal's screen clears the output, as in a shell.
    """

    def __init__(self, emit: Emit, limits: dict[str, float], *, screen: bool = False) -> None:
        self._emit = emit
        self._shown, self._kept = int(limits["output_bytes"]), int(limits["kept_output_bytes"])
        self._room = self._shown
        self._display_room = DISPLAYS * limits["file_bytes"]
        self._decoders = {
            name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")
        }
        self._waiting: list[tuple[str, str]] = []
        self._whole: list[bytes] = []
        self._whole_size = 0
        self._cleared = self._clear_due = False
        self._screen = screen
        self._errors = 0
        self.total = 0
        self.truncated = False

    def feed(self, name: str, data: bytes) -> None:
        """Take bytes of a stream."""
        text = self._decoders[name].decode(data)
        if self._screen and "\x1b[H" in text:
            *before, text = CLEAR.split(text)
            for piece in before:
                self._text(name, piece)
                self.flush()
                self._clear_due = True
        self._text(name, text)

    def note(self, text: str) -> None:
        """Add a line of ours; it is shown even when the output is cut."""
        self.flush()
        self._emit({"type": "stream", "name": "stderr", "text": f"[dagger_kernel] {text}\n"}, b"")

    def frame(self, head: dict[str, Any], body: bytes) -> None:
        """Pass a frame that is no text, within the limits."""
        kind = head["type"]
        if kind == "clear":
            if self._cleared:
                return  # a loop that clears nothing
            self._cleared = True
        elif kind == "error":
            self._errors += 1
            if self._errors > MAX_ERRORS:
                return
        elif not self._fits(head, body):
            return
        if kind != "clear":
            self._cleared = False
        self._emit(head, body)

    def _fits(self, head: dict[str, Any], body: bytes) -> bool:
        """Count a display, result or comm; return whether it may still be sent."""
        data = head.get("data")
        size = len(body)
        if isinstance(data, dict):
            text = data.get("text/plain")
            size += sum(len(str(value)) for kind, value in data.items() if kind != "text/plain")
            if isinstance(text, str):
                marked = self.truncated
                shown = self._admit(text)
                if shown != text:
                    cut = "[cut]" if marked else self.marker()
                    head["data"] = data | {"text/plain": shown + cut}
        else:
            size += len(str(head.get("content")))
        had_room = self._display_room > 0
        self._display_room -= size
        if self._display_room > 0:
            return True
        if had_room:
            self.note(
                "No more is displayed: a cell's displays are limited (DAGGER_KERNEL_FILE_BYTES)."
            )
        return False

    def _text(self, name: str, text: str) -> None:
        if not text:
            return
        self._clear(wait=True)
        self._cleared = False
        marked = self.truncated
        shown = self._admit(text)
        if shown:
            self._waiting.append((name, shown))
        if self.truncated and not marked:
            self.flush()
            self._emit({"type": "stream", "name": "stderr", "text": self.marker()}, b"")

    def _admit(self, text: str) -> str:
        """Count text; return what may be shown of it."""
        data = text.encode("utf-8", "surrogatepass")
        self.total += len(data)
        if self._whole_size < self._kept:
            part = data[: self._kept - self._whole_size]
            self._whole.append(part)
            self._whole_size += len(part)
        if len(data) <= self._room:
            self._room -= len(data)
            return text
        part = data[: self._room]
        self._room = 0
        self.truncated = True
        return part.decode("utf-8", "ignore")

    def marker(self) -> str:
        """Return the one line that stands where the output was cut."""
        return (
            f"\n[dagger_kernel] The output is cut here: a cell shows {self._shown} bytes of text "
            f"(DAGGER_KERNEL_OUTPUT_BYTES). The whole text is kept, up to {self._kept} bytes.\n"
        )

    def flush(self) -> None:
        """Send what has been gathered: neighbouring pieces of one stream as one frame."""
        waiting, self._waiting = self._waiting, []
        start = 0
        while start < len(waiting):
            name = waiting[start][0]
            end = start
            while end < len(waiting) and waiting[end][0] == name:
                end += 1
            text = "".join(piece for _, piece in waiting[start:end])
            self._emit({"type": "stream", "name": name, "text": text}, b"")
            start = end
        self._clear(wait=False)

    def _clear(self, *, wait: bool) -> None:
        """Clear what a shell's command wanted to be cleared; with text at hand, without a flicker."""
        if self._clear_due:
            self._clear_due = False
            self.frame({"type": "clear", "wait": wait}, b"")

    def finish(self) -> None:
        """Send the rest: bytes of characters that were never completed, and the whole text."""
        for name, decoder in self._decoders.items():
            self._text(name, decoder.decode(b"", final=True))
        self.flush()
        if self.truncated:
            self._emit({"type": "overflow"}, b"".join(self._whole))


def drain(file: int, limit: int = 64) -> bytes:
    """Return what is in a non-blocking pipe now, at most ``limit`` chunks."""
    chunks = []
    for _ in range(limit):
        try:
            chunk = os.read(file, CHUNK)
        except BlockingIOError:
            break
        if not chunk:
            break
        chunks.append(chunk)
        if len(chunk) < CHUNK:
            break
    return b"".join(chunks)

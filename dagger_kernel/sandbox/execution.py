"""What the Python API gives back: close to the shape of E2B's ``run_code``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from .cell import CellResult, ExportedFile

SHORT_NAMES = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/latex": "latex",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "application/json": "json",
    "application/javascript": "javascript",
}


@dataclass(frozen=True, slots=True)
class Rich:
    """One displayed or returned value: a MIME bundle.

    ``result.png``, ``result.html``, ``result.text`` ... are the bundle's entries, None if absent.
    """

    data: dict[str, Any]
    is_main_result: bool = False

    def __getattr__(self, name: str) -> Any:
        for mime, short in SHORT_NAMES.items():
            if short == name:
                return self.data.get(mime)
        raise AttributeError(name)

    def formats(self) -> list[str]:
        """Return the short names of what the bundle holds."""
        return [SHORT_NAMES.get(mime, mime) for mime in self.data]


@dataclass(frozen=True, slots=True)
class Logs:
    """Text a cell wrote, as pieces in order."""

    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ExecutionError:
    """The exception that ended a cell."""

    name: str
    value: str
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What became of a cell.

    Attributes
    ----------
    results
        Displayed values in order; the last expression's has ``is_main_result``.
    logs
        What it wrote.
    error
        None if it succeeded.
    files
        New, changed and deleted files; ``data`` holds the bytes of exported ones.
    state
        The state report: what was saved, what was lost and why.
    usage
        CPU and wall time, memory.
    status
        ``ok``, ``error``, ``interrupted`` or ``limit``.
    execution_count, step, key
        The cell's number, its step's number and the key of the state after it.
    drift
        What a replay before this cell found changed.
    """

    results: list[Rich]
    logs: Logs
    error: ExecutionError | None
    files: list[ExportedFile]
    state: dict[str, Any]
    usage: dict[str, Any]
    status: str
    execution_count: int | None
    step: int
    key: str
    drift: list[str] = field(default_factory=list)

    @property
    def text(self) -> str | None:
        """The text of the last expression's value, None if there was none."""
        for result in self.results:
            if result.is_main_result:
                text = result.data.get("text/plain")
                return None if text is None else str(text)
        return None

    def to_json(self) -> str:
        """Return what a model is shown of the cell: results, logs and error as a JSON text."""
        results = [
            {SHORT_NAMES.get(mime, mime): value for mime, value in item.data.items()}
            | {"is_main_result": item.is_main_result}
            for item in self.results
        ]
        shown = {"results": results, "logs": asdict(self.logs)}
        return json.dumps(shown | {"error": asdict(self.error) if self.error else None})

    @classmethod
    def of(cls, done: CellResult) -> Self:
        """Return the execution of a finished cell."""
        results, logs, error = [], Logs(), None
        for output in done.result.outputs:
            kind = output["output_type"]
            if kind == "stream":
                (logs.stderr if output["name"] == "stderr" else logs.stdout).append(output["text"])
            elif kind == "error":
                error = _error(output)
            else:
                results.append(Rich(output["data"], kind == "execute_result"))
        return cls(
            results=results,
            logs=logs,
            error=error,
            files=done.files,
            state=done.result.state_report,
            usage=done.result.usage,
            status=str(done.result.status),
            execution_count=done.result.execution_count,
            step=done.step.seq if done.step else 0,
            key=done.step.key if done.step else "",
            drift=done.drift,
        )


def _error(output: dict[str, Any]) -> ExecutionError:
    trace = "\n".join(output.get("traceback") or [])
    return ExecutionError(str(output.get("ename")), str(output.get("evalue")), trace)


class Streaming:
    """A `StepListener` that calls back while the cell runs."""

    def __init__(
        self,
        on_stdout: Callable[[str], None] | None,
        on_stderr: Callable[[str], None] | None,
        on_result: Callable[[Rich], None] | None,
        on_error: Callable[[ExecutionError], None] | None,
        stdin: Callable[[str], str] | None,
    ) -> None:
        self._text = {"stdout": on_stdout, "stderr": on_stderr}
        self._on_result, self._on_error = on_result, on_error
        self._stdin = stdin

    def event(self, head: dict[str, Any], body: bytes) -> None:
        """Pass on text and values."""
        if head["type"] == "stream":
            callback = self._text.get(head.get("name", "stdout"))
            if callback is not None:
                callback(head.get("text", ""))
        elif head["type"] in ("display", "result") and self._on_result is not None:
            self._on_result(Rich(head.get("data", {}), head["type"] == "result"))
        elif head["type"] == "error" and self._on_error is not None:
            self._on_error(_error(head))

    async def input(self, prompt: str, password: bool) -> str:
        """Ask the callback, in a worker thread: it may block."""
        if self._stdin is None:
            raise EOFError("this cell may not ask for input")
        return await asyncio.to_thread(self._stdin, prompt)

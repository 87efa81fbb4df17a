"""A stand-in for SandboxSession whose cells are scripts about what a sandbox would do.

The cell's source is the body of a coroutine with these names: ``emit(type, **fields)`` sends a frame,
``ask(prompt, password)`` asks the client, ``interrupted`` is an asyncio.Event, ``comms`` the list of comm
messages that arrived, ``end(**fields)`` sets fields of the outcome, ``export(path, data)`` exports a file,
``errors`` is `dagger_kernel.errors`. A SyntaxError is a kernel bug on purpose: it escapes ``run``.
"""

from __future__ import annotations

import asyncio
import textwrap
import uuid

from dagger_kernel import errors
from dagger_kernel.engines.base import Outcome
from dagger_kernel.sandbox import CellResult, ExportedFile, InterruptedByUser, Uploaded
from dagger_kernel.steps import Kind, Result, Status, Step


class ScriptedSession:
    engine_name = "scripted"
    opened = 0

    def __init__(self, settings):
        self.settings = settings
        self.id = f"scripted-{uuid.uuid4().hex[:8]}"
        self.next_execution_count = 1
        self.logged = []
        self.inputs = []
        self._running = None

    @classmethod
    async def open(cls, settings, *, sandbox_id=None, notebook="", kernel_name=""):
        if settings.database_url.startswith("broken"):
            raise errors.LogUnavailableError("The log is on a disk that is gone.")
        if settings.database_url.startswith("hanging"):
            await asyncio.sleep(3600)
        return cls(settings)

    def start_warming(self):
        pass

    async def run(self, cell, listener):
        run = _Run(cell, listener)
        self._running = run
        try:
            await run.go()
        finally:
            self._running = None
        self.logged.append(cell)
        if cell.store_history:
            self.inputs.append((1, cell.execution_count, cell.source))
            self.next_execution_count = cell.execution_count + 1
        step = Step(
            id=uuid.uuid4().hex, sandbox_id=self.id, seq=len(self.logged), parent_id=None,
            kind=Kind.CELL, nonce="n", base_digest="b", runner_digest="r", engine="scripted",
            key="k" * 64, language=cell.language, source=cell.source,
        )  # fmt: skip
        result = Result(step_id=step.id, status=Status(run.outcome.status))
        return CellResult(
            step=None if cell.silent else step, result=result, outcome=run.outcome,
            drift=run.drift, files=run.files,
        )  # fmt: skip

    async def interrupt(self):
        if self._running is not None:
            self._running.interrupted.set()

    async def send_comm(self, message, buffers):
        if self._running is not None:
            self._running.comms.append((message, buffers))

    async def ask(self, kind, content):
        if content["code"].startswith("slow"):
            await asyncio.sleep(60)
        if kind == "complete":
            start = content["cursor_pos"] - len(content["code"].split()[-1])
            return {"matches": ["scripted_name"], "cursor_start": start,
                    "cursor_end": content["cursor_pos"], "metadata": {}, "status": "ok"}  # fmt: skip
        if kind == "inspect":
            return {"status": "ok", "found": True, "data": {"text/plain": "doc"}, "metadata": {}}
        return {}

    async def history(self, *, kind="tail", output=False, n=None, **_query):
        rows = self.inputs[-(n or len(self.inputs)) :] if self.inputs else []
        return [(s, line, (text, None) if output else text) for s, line, text in rows]

    def status(self):
        return {"id": self.id, "engine": "scripted", "base": "scripted", "steps": len(self.logged),
                "network": "none", "data_dir": "/nowhere", "limits": {}}  # fmt: skip

    async def steps(self, after=0):
        return []

    async def upload(self, files, *, reuse_equal=False):
        placed = [(file.name, f"attachments/{file.name}") for file in files]
        return Uploaded(None, placed, {})

    secrets = ()

    def give_secret(self, name, value=None):
        pass

    def forget_secret(self, name):
        return False

    async def rewind(self, seq):
        pass

    async def fork(self, seq=None):
        return f"{self.id}-fork"

    async def end(self, *, restart):
        pass

    async def close(self):
        pass


class _Run:
    def __init__(self, cell, listener):
        self.cell, self.listener = cell, listener
        self.interrupted = asyncio.Event()
        self.comms, self.files, self.drift = [], [], []
        self.outcome = Outcome(status="ok")

    async def go(self):
        body = textwrap.indent(self.cell.source or "pass", "    ")
        names = {
            "emit": self.emit, "ask": self.listener.input, "interrupted": self.interrupted,
            "comms": self.comms, "end": self.end, "export": self.export, "errors": errors,
            "asyncio": asyncio, "InterruptedByUser": InterruptedByUser, "cell": self.cell,
            "drift": self.drift.append,
        }  # fmt: skip
        exec(f"async def script():\n{body}\n", names)  # noqa: S102
        await names["script"]()

    def emit(self, kind, body=b"", **fields):
        self.listener.event({"type": kind, **fields}, body)

    def end(self, status="ok", **fields):
        self.outcome = Outcome(status=status, **fields)

    def export(self, path, data=b"", mime="application/octet-stream", kind="new", skipped=None):
        self.files.append(
            ExportedFile(path=path, kind=kind, size=len(data), mime=mime,
                         blob=None if skipped else "d" * 64,
                         data=None if skipped else data, skipped=skipped)
        )  # fmt: skip

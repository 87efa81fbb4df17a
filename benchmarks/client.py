"""A measured front end: one kernel, driven over ZeroMQ, with the time from request to reply."""

from __future__ import annotations

import os
import queue
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.manager import KernelManager


@dataclass
class Subject:
    """A kernel to measure: a name for the table, a kernelspec, an environment."""

    name: str
    kernel: str
    env: dict[str, str] = field(default_factory=dict)


def subjects() -> list[Subject]:
    """Return what is measured: plain ipykernel first, Dagger only where it is configured."""
    found = [
        Subject("ipykernel", "python3"),
        Subject("local", "dagger", {"DAGGER_KERNEL_ENGINE": "local"}),
    ]
    if os.environ.get("DAGGER_KERNEL_RUNNER_HOST"):
        found.append(Subject("dagger", "dagger", {"DAGGER_KERNEL_ENGINE": "dagger"}))
    return found


class Client:
    """One started kernel.

    Attributes
    ----------
    cells
        How many cells it ran.
    """

    def __init__(self, subject: Subject, data_dir: str, sandbox: str = "") -> None:
        self.env = {**os.environ, **subject.env, "DAGGER_KERNEL_DATA_DIR": data_dir}
        if sandbox:
            self.env["DAGGER_KERNEL_SANDBOX"] = sandbox
        self.cells = 0
        self.texts: list[str] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self.manager = KernelManager(kernel_name=subject.kernel)
        self.started = time.perf_counter()
        self.manager.start_kernel(env=self.env, stdout=self._log, stderr=self._log)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def run(self, code: str, timeout: float = 300) -> float:
        """Run a cell; return milliseconds from request to reply.

        Raises
        ------
        RuntimeError
            The cell failed: a benchmark of a failing cell says nothing.
        """
        begin = time.perf_counter()
        msg_id = self.client.execute(code, allow_stdin=False)
        while True:
            reply = self.client.get_shell_msg(timeout=timeout)
            if reply["parent_header"].get("msg_id") == msg_id:
                break
        took = (time.perf_counter() - begin) * 1000
        self.cells += 1
        self.texts = self._drain(msg_id)
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"{code!r}: {reply['content']} {self.texts}")
        return took

    def first_output(self, code: str) -> float:
        """Run a cell; return milliseconds from request to its first stream output."""
        begin = time.perf_counter()
        msg_id = self.client.execute(code, allow_stdin=False)
        took = 0.0
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=60)
            except queue.Empty:
                break  # a new subscriber may miss the very first messages
            if message["parent_header"].get("msg_id") == msg_id and message["msg_type"] == "stream":
                took = (time.perf_counter() - begin) * 1000
                break
        self._reply(msg_id)
        return took or (time.perf_counter() - begin) * 1000

    def interrupt(self, code: str, after: float) -> float:
        """Run a cell, interrupt it; return milliseconds from the interrupt to the reply."""
        msg_id = self.client.execute(code, allow_stdin=False)
        time.sleep(after)
        begin = time.perf_counter()
        self.manager.interrupt_kernel()
        self._reply(msg_id)
        return (time.perf_counter() - begin) * 1000

    def complete(self, code: str) -> float:
        """Ask for completions; return milliseconds."""
        begin = time.perf_counter()
        msg_id = self.client.complete(code, len(code))
        self._reply(msg_id)
        return (time.perf_counter() - begin) * 1000

    def inspect(self, code: str) -> float:
        """Ask about a name; return milliseconds."""
        begin = time.perf_counter()
        msg_id = self.client.inspect(code, len(code))
        self._reply(msg_id)
        return (time.perf_counter() - begin) * 1000

    def print_delay(self, code: str) -> float:
        """Run a cell that prints clock readings; return the median milliseconds until they arrive."""
        msg_id = self.client.execute(code, allow_stdin=False)
        delays: list[float] = []
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                last = content["text"].split()[-1]
                delays.append((time.time() - float(last)) * 1000)
            elif content.get("execution_state") == "idle":
                break
        self._reply(msg_id)
        return median(delays)

    def _reply(self, msg_id: str) -> dict[str, Any]:
        while True:
            reply = self.client.get_shell_msg(timeout=300)
            if reply["parent_header"].get("msg_id") == msg_id:
                return reply

    def _drain(self, msg_id: str) -> list[str]:
        texts = []
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=2)
            except queue.Empty:
                return texts
            content = message["content"]
            if message["msg_type"] == "stream":
                texts.append(content["text"])
            idle = message["msg_type"] == "status" and content["execution_state"] == "idle"
            if idle and message["parent_header"].get("msg_id") == msg_id:
                return texts

    def sandbox_id(self) -> str:
        """Return the sandbox's id (our kernel only)."""
        self.run("%sandbox id")
        return "".join(self.texts).strip()

    def close(self) -> None:
        """End the kernel."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self._log.close()


def median(values: list[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def drop_caches(data_dir: str) -> None:
    """Delete every layer of a data directory."""
    shutil.rmtree(os.path.join(data_dir, "layers"), ignore_errors=True)

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


class Client:
    """One started kernel."""

    def __init__(self, subject: Subject, data_dir: str, sandbox: str = "") -> None:
        self.env = {**os.environ, **subject.env, "DAGGER_KERNEL_DATA_DIR": data_dir}
        if sandbox:
            self.env["DAGGER_KERNEL_SANDBOX"] = sandbox
        self._log = tempfile.TemporaryFile()
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
        self.texts = self._drain(msg_id)
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"{code!r}: {reply['content']} {self.texts}")
        return took

    def first_output(self, code: str) -> float:
        """Run a cell; return milliseconds from request to its first stream output."""
        begin = time.perf_counter()
        msg_id = self.client.execute(code, allow_stdin=False)
        while True:
            message = self.client.get_iopub_msg(timeout=300)
            mine = message["parent_header"].get("msg_id") == msg_id
            is_text = message["msg_type"] == "stream" and "first" in message["content"]["text"]
            if mine and is_text:
                took = (time.perf_counter() - begin) * 1000
                break
        self._reply(msg_id)
        return took

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

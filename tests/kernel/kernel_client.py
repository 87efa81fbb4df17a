"""A small front end: sends requests, collects everything that answers them."""

from __future__ import annotations

import os
import queue
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from jupyter_client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from kernel_schemas import validate

TIMEOUT = 60.0


@dataclass
class Answered:
    """What came back for one request."""

    reply: dict[str, Any] | None = None
    iopub: list[dict[str, Any]] = field(default_factory=list)
    replies: int = 0
    inputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def content(self):
        return self.reply["content"]

    @property
    def states(self):
        return [m["content"]["execution_state"] for m in self.iopub if m["msg_type"] == "status"]

    def of(self, *kinds):
        return [m for m in self.iopub if m["msg_type"] in kinds]

    @property
    def outputs(self):
        """What a notebook would hold, as the protocol says."""
        held, clear = [], False
        for message in self.iopub:
            kind, content = message["msg_type"], message["content"]
            if kind == "clear_output":
                if content["wait"]:
                    clear = True
                else:
                    held.clear()
            elif kind in ("stream", "display_data", "execute_result", "error"):
                if clear:
                    held.clear()
                    clear = False
                held.append(message)
        return held

    @property
    def stdout(self):
        return self.text("stdout")

    @property
    def stderr(self):
        return self.text("stderr")

    def text(self, name):
        return "".join(
            m["content"]["text"]
            for m in self.outputs
            if m["msg_type"] == "stream" and m["content"]["name"] == name
        )

    @property
    def enames(self):
        return [m["content"]["ename"] for m in self.outputs if m["msg_type"] == "error"]


class Client:
    """Drives one jupyter_client client."""

    def __init__(self, kc):
        self.kc = kc
        self.answered = defaultdict(Answered)
        self.seen = set()

    def send(self, msg_type, content, *, channel="shell", metadata=None, header=None):
        message = self.kc.session.msg(msg_type, content)
        if metadata is not None:
            message["metadata"] = metadata
        message["header"].update(header or {})
        getattr(self.kc, f"{channel}_channel").send(message)
        return message["header"]["msg_id"]

    def request(self, msg_type, content, *, channel="shell", timeout=TIMEOUT, **options):
        return self.collect(
            self.send(msg_type, content, channel=channel, **options),
            channel=channel,
            timeout=timeout,
        )

    def execute(self, code, *, answers=(), timeout=TIMEOUT, linger=0.05, **fields):
        msg_id = self.start(code, **fields)
        return self.collect(msg_id, answers=answers, timeout=timeout, linger=linger)

    def start(self, code, **fields):
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
            **fields,
        }
        return self.send("execute_request", content)

    def collect(
        self, msg_id, *, channel="shell", answers=(), timeout=TIMEOUT, wants_reply=True, linger=0.05
    ):
        """Wait for the reply and for idle; then a moment longer, to see what must not come."""
        got, answers = self.answered[msg_id], list(answers)
        deadline = time.monotonic() + timeout
        while not ("idle" in got.states and (got.reply is not None or not wants_reply)):
            assert time.monotonic() < deadline, f"no end of {msg_id}: {got}"
            self._poll(got, channel, answers)
        end = time.monotonic() + linger
        while time.monotonic() < end:
            self._poll(got, channel, answers)
        return got

    def _validate(self, message, channel):
        validate(message, channel)
        self.seen.add((channel, message["msg_type"], message["content"].get("status", "")))

    def _poll(self, got, channel, answers):
        for take in (self.kc.get_iopub_msg, getattr(self.kc, f"get_{channel}_msg")):
            try:
                message = take(timeout=0.01)
            except queue.Empty:
                continue
            self._validate(message, "iopub" if take == self.kc.get_iopub_msg else channel)
            owner = self.answered[message["parent_header"].get("msg_id")]
            if take == self.kc.get_iopub_msg:
                owner.iopub.append(message)
            else:
                owner.reply, owner.replies = message, owner.replies + 1
        try:
            question = self.kc.get_stdin_msg(timeout=0)
        except queue.Empty:
            return
        self._validate(question, "stdin")
        got.inputs.append(question)
        self.kc.input(answers.pop(0) if answers else "")


class Kernels:
    """Starts kernels and ends them."""

    def __init__(self, folder):
        self.folder = folder
        self.started = []

    def start(self, name="scripted", **env):
        """Start a kernel; return a client with the manager and the process's output."""
        log = (self.folder / f"kernel-{len(self.started)}.log").open("w+b")
        manager = KernelManager(kernel_name=name)
        manager.start_kernel(
            cwd=str(self.folder), env={**os.environ, **env}, stdout=log, stderr=log
        )
        client = Client(manager.client())
        client.manager, client.log = manager, log
        self.started.append(client)
        client.kc.start_channels()
        client.kc.wait_for_ready(timeout=60)
        return client

    def connect(self, client):
        """Return a second, independent client of a kernel."""
        kc = BlockingKernelClient(connection_file=client.manager.connection_file)
        kc.load_connection_file()
        second = Client(kc)
        second.manager = second.log = None
        self.started.append(second)
        kc.start_channels()
        kc.wait_for_ready(timeout=60)
        return second

    def end(self):
        """End all of them."""
        for client in self.started:
            client.kc.stop_channels()
            client.kc.context.term()
            if client.manager is not None:
                client.manager.shutdown_kernel(now=True)
                client.manager.cleanup_resources()
                client.log.close()

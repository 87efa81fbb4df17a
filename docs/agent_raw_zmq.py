"""An agent that runs code in a sandbox with nothing but pyzmq: no jupyter_client.

::

    python agent_raw_zmq.py 'x = 6' 'print(x * 7)'

Starts a kernel, runs each argument as a cell and prints one JSON object a cell: its text, results,
error and what the reply's metadata tells of the step (id, files, usage, state). The kernel can as
well run elsewhere: all an agent needs is the connection file.

Three things are easy to get wrong:

- ``metadata`` must be an object, ``{}`` if there is none;
- a cell is over when its reply *and* the status ``idle`` are there: they come on two sockets;
- the IOPub socket must be subscribed before the first cell, or its first output is lost.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zmq

DELIMITER = b"<IDS|MSG>"
CHANNELS = {"shell": zmq.DEALER, "control": zmq.DEALER, "stdin": zmq.DEALER, "iopub": zmq.SUB}


class Agent:
    """One client of one kernel, on raw sockets."""

    def __init__(self, connection: dict[str, Any]) -> None:
        self.key = connection["key"].encode()
        self.session = uuid.uuid4().hex
        self.context = zmq.Context()
        self.sockets: dict[str, zmq.Socket[bytes]] = {}
        self.poller = zmq.Poller()
        for name, kind in CHANNELS.items():
            channel = self.context.socket(kind)
            channel.linger = 0
            if kind == zmq.SUB:
                channel.subscribe(b"")
            else:
                # shell and stdin must have the same identity: questions are routed by it.
                channel.identity = self.session.encode()
            channel.connect(f"tcp://{connection['ip']}:{connection[f'{name}_port']}")
            self.sockets[name] = channel
            self.poller.register(channel, zmq.POLLIN)

    def send(self, channel: str, kind: str, content: dict[str, Any]) -> str:
        """Send a message and return its id."""
        header = {
            "msg_id": uuid.uuid4().hex,
            "session": self.session,
            "username": "agent",
            "date": datetime.now(UTC).isoformat(),
            "msg_type": kind,
            "version": "5.5",
        }
        parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
        self.sockets[channel].send_multipart([DELIMITER, self.sign(parts), *parts])
        return header["msg_id"]

    def sign(self, parts: list[bytes]) -> bytes:
        """Return the signature of the four parts."""
        return hmac.new(self.key, b"".join(parts), hashlib.sha256).hexdigest().encode()

    def receive(self, seconds: float) -> list[tuple[str, dict[str, Any]]]:
        """Return what has arrived on any channel, as (channel, message)."""
        arrived = []
        for channel, _ in self.poller.poll(seconds * 1000):
            frames = channel.recv_multipart()
            begin = frames.index(DELIMITER) + 1
            signature, parts = frames[begin], frames[begin + 1 : begin + 5]
            if not hmac.compare_digest(signature, self.sign(parts)):
                continue
            names = ("header", "parent_header", "metadata", "content")
            message = dict(zip(names, map(json.loads, parts), strict=True))
            name = next(n for n, s in self.sockets.items() if s is channel)
            arrived.append((name, message))
        return arrived

    def wait_until_ready(self, seconds: float = 60) -> dict[str, Any]:
        """Ask for kernel_info until both reply and IOPub arrive; return the reply."""
        end = time.monotonic() + seconds
        info, subscribed = None, False
        while time.monotonic() < end:
            self.send("shell", "kernel_info_request", {})
            for channel, message in self.receive(1):
                subscribed |= channel == "iopub"
                if message["header"]["msg_type"] == "kernel_info_reply":
                    info = message["content"]
            if info and subscribed:
                return info
        raise TimeoutError("the kernel does not answer")

    def run(self, code: str, seconds: float = 300, answers: tuple[str, ...] = ()) -> dict[str, Any]:
        """Run a cell and return what it did."""
        request = self.send(
            "shell", "execute_request", {"code": code, "allow_stdin": bool(answers)}
        )
        result: dict[str, Any] = {"stdout": "", "stderr": "", "results": [], "error": None}
        left, reply, idle = list(answers), None, False
        end = time.monotonic() + seconds
        while not (reply and idle):
            if time.monotonic() > end:
                self.send("control", "interrupt_request", {})
                end = time.monotonic() + 30
            for _channel, message in self.receive(1):
                if message["parent_header"].get("msg_id") != request:
                    continue
                kind, content = message["header"]["msg_type"], message["content"]
                if kind == "execute_reply":
                    reply = message
                elif kind == "status":
                    idle = content["execution_state"] == "idle"
                elif kind == "stream":
                    result[content["name"]] += content["text"]
                elif kind in ("execute_result", "display_data"):
                    result["results"].append(content["data"])
                elif kind == "clear_output":
                    result["results"].clear()
                elif kind == "error":
                    result["error"] = {n: content[n] for n in ("ename", "evalue", "traceback")}
                elif kind == "input_request":
                    self.send("stdin", "input_reply", {"value": left.pop(0) if left else ""})
        result["step"] = reply["metadata"].get("dagger_kernel", {})
        return result

    def close(self, *, shutdown: bool = True) -> None:
        """End the kernel (the log stays) and the sockets."""
        if shutdown:
            self.send("control", "shutdown_request", {"restart": False})
            self.receive(5)
        self.context.destroy(linger=1000)


def start_kernel(directory: str) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """Start a kernel on this machine; return the process and the connection."""
    ports = {f"{name}_port": _free_port() for name in (*CHANNELS, "hb")}
    connection = {
        "ip": "127.0.0.1",
        "transport": "tcp",
        "signature_scheme": "hmac-sha256",
        "key": uuid.uuid4().hex,
        **ports,
    }
    file = Path(directory, "connection.json")
    file.touch(0o600)
    file.write_text(json.dumps(connection))
    command = [sys.executable, "-P", "-m", "dagger_kernel", "-f", str(file)]
    # Its log lines are of no interest here; the cells' output never goes to its stderr.
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ), connection


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(cells: list[str]) -> None:
    """Run the cells, one JSON line each."""
    with tempfile.TemporaryDirectory() as directory:
        process, connection = start_kernel(directory)
        agent = Agent(connection)
        try:
            agent.wait_until_ready()
            for cell in cells:
                print(json.dumps(agent.run(cell)), flush=True)
        finally:
            agent.close()
            process.wait(30)


if __name__ == "__main__":
    main(sys.argv[1:] or ["print('hello from a sandbox')"])

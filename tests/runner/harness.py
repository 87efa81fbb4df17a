"""Drive the real runner over a real socket."""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dagger_kernel.runner.packets import FrameReader
from dagger_kernel.runner.protocol import encode

UNSHARE = [
    "unshare",
    "--user",
    "--map-root-user",
    "--pid",
    "--fork",
    "--mount-proc",
    "--kill-child",
]
"""A pid namespace of the runner's own, as the embedded engine makes one."""

SHELL_AS_INIT = ["sh", "-c", '"$0" "$@"; exit $?']
"""A container's own init, with the runner below it, as on Dagger."""

REPO = Path(__file__).resolve().parents[2]


@dataclass
class Result:
    frames: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)
    exit_code: int | None = None

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [head for head, _ in self.frames if head["type"] == kind]

    def text(self, name: str = "stdout") -> str:
        return "".join(head["text"] for head in self.of("stream") if head["name"] == name)

    @property
    def stdout(self) -> str:
        return self.text("stdout")

    @property
    def stderr(self) -> str:
        return self.text("stderr")

    @property
    def done(self) -> dict[str, Any]:
        (done,) = self.of("done")
        return done

    @property
    def status(self) -> str:
        return self.done["status"]

    @property
    def error(self) -> dict[str, Any]:
        (error,) = self.of("error")
        return error

    @property
    def result(self) -> str:
        (result,) = self.of("result")
        return result["data"]["text/plain"]

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        return {
            head["path"]: head | {"body": body}
            for head, body in self.frames
            if head["type"] == "file"
        }

    @property
    def order(self) -> list[str]:
        """Kinds of frames, neighbouring streams of one name joined."""
        kinds: list[str] = []
        for head, _ in self.frames:
            kind = head["type"] if head["type"] != "stream" else head["name"]
            if not kinds or kinds[-1] != kind:
                kinds.append(kind)
        return kinds


class Zygote:
    """A warm process that forks a runner for each step."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "forked.py"), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment({}),
        )
        theirs.close()
        self.control.recv(100)

    def call(self, request: dict[str, Any], files: list[int]) -> dict[str, Any]:
        socket.send_fds(self.control, [json.dumps(request).encode()], files)
        return json.loads(self.control.recv(4096))

    def close(self) -> None:
        self.control.close()
        self.process.wait(10)


class Fork:
    """A runner that a zygote forked, with the interface of `subprocess.Popen` that tests use."""

    def __init__(self, zygote: Zygote, request: dict[str, Any], link: int):
        self.zygote = zygote
        self.pid = zygote.call({"op": "open", **request}, [link])["pid"]
        self.returncode: int | None = None

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while self.returncode is None:
            self.returncode = self.zygote.call({"op": "poll", "pid": self.pid}, [])["exit"]
            if self.returncode is None:
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired("runner", timeout)
                time.sleep(0.005)
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def environment(more: dict[str, str]) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPO),
        "PYTHONHASHSEED": "0",
        **more,
    }


class Runner:
    """One runner process: one room."""

    def __init__(
        self,
        root: Path,
        *,
        zygote: Zygote | None = None,
        init: bool = False,
        alone: bool = False,
        preload: str = "",
        memory_events: int = -1,
        env: dict[str, str] | None = None,
    ):
        self.home = root / "home"
        self.state = root / "state"
        self.home.mkdir(parents=True, exist_ok=True)
        self.state.mkdir(parents=True, exist_ok=True)
        self.nonce = secrets.token_hex(16)
        self.sock, theirs = socket.socketpair()
        self.process: Any
        if zygote is not None:
            request = {"nonce": self.nonce, "state": str(self.state), "home": str(self.home)}
            self.process = Fork(zygote, {**request, "env": env or {}}, theirs.fileno())
        else:
            arguments = ["--fd", str(theirs.fileno()), "--nonce", self.nonce, "--preload", preload]
            arguments += ["--state-dir", str(self.state), "--home", str(self.home)]
            if init or alone:
                arguments.append("--init" if init else "--alone")
            passed = [theirs.fileno()]
            if memory_events >= 0:
                arguments += ["--memory-events", str(memory_events)]
                passed.append(memory_events)
            self.process = subprocess.Popen(
                [
                    *(UNSHARE if init or alone else []),
                    *(SHELL_AS_INIT if alone else []),
                    sys.executable,
                    "-m",
                    "dagger_kernel.runner",
                    *arguments,
                ],
                pass_fds=passed,
                cwd=self.home,
                env=environment(env or {}),
            )
        theirs.close()
        self.reader = FrameReader()
        self.waiting: list[tuple[dict[str, Any], bytes]] = []
        self.frames: list[tuple[dict[str, Any], bytes]] = []

    def receive(self, seconds: float = 60.0) -> tuple[dict[str, Any], bytes] | None:
        deadline = time.monotonic() + seconds
        while not self.waiting:
            ready, _, _ = select.select([self.sock], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no frame in {seconds} s; so far {self.frames[-5:]}")
            data = self.sock.recv(1 << 20)
            if not data:
                return None
            self.waiting += self.reader.feed(data)
        return self.waiting.pop(0)

    def until(self, kind: str, seconds: float = 60.0) -> dict[str, Any]:
        """Collect frames up to the first one of a kind."""
        while True:
            frame = self.receive(seconds)
            assert frame is not None, f"the link closed before {kind}: {self.frames[-5:]}"
            self.frames.append(frame)
            if frame[0]["type"] == kind:
                return frame[0]

    def until_text(self, text: str, seconds: float = 60.0) -> None:
        """Collect frames until a text has been printed."""
        while text not in "".join(h["text"] for h, _ in self.frames if h["type"] == "stream"):
            self.until("stream", seconds)

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        self.sock.sendall(encode(head, body))

    def ask(self, kind: str, **content: Any) -> dict[str, Any]:
        self.send({"type": "ask", "id": secrets.token_hex(4), "kind": kind, "content": content})
        return self.until("answer")["content"]

    def step(self, source: str, **more: Any) -> None:
        """Send the step."""
        self.send(
            {
                "type": "step",
                "nonce": self.nonce,
                "language": "python",
                "source": source,
                "silent": False,
                "store_history": True,
                "execution_count": 1,
                "user_expressions": {},
                "allow_stdin": False,
                "limits": {},
                "answers": None,
                "env": {},
                "replay": False,
                "exports": {"exclude": []},
                **more,
            }
        )

    def interrupt(self) -> None:
        self.send({"type": "interrupt"})

    def finish(self, seconds: float = 60.0) -> Result:
        """Collect the rest."""
        self.until("done", seconds)
        code = self.process.wait(10)
        self.sock.close()
        return Result(self.frames, code)

    def close(self) -> None:
        self.sock.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)


class Room:
    """Runs steps one after the other on the same directories."""

    def __init__(self, root: Path, **options: Any):
        self.root = root
        self.options = options
        self.count = 0
        self.open: list[Runner] = []

    @property
    def home(self) -> Path:
        return self.root / "home"

    def start(self, **options: Any) -> Runner:
        runner = Runner(self.root, **{**self.options, **options})
        self.open.append(runner)
        return runner

    def run(self, source: str, **more: Any) -> Result:
        self.count += 1
        runner = self.start()
        runner.step(source, **{"execution_count": self.count, **more})
        return runner.finish()

    def close(self) -> None:
        for runner in self.open:
            runner.close()

"""The ``dagger`` command: find it, and start the session process that talks to the engine.

Why not the SDK's own start: it takes engine and command from this process's environment, which user code of
in-process tools could see and change, it downloads a command that is missing, and it waits without end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ...errors import (
    EngineConnectionError,
    EngineError,
    EngineUnavailableError,
    EngineVersionError,
)
from ...settings import Settings
from . import faults

PROBE_SECONDS = 3.0
END_SECONDS = 3.0
KEPT_LINES = 40


def find_cli(settings: Settings) -> str:
    """Return the path of the dagger command.

    Raises
    ------
    EngineUnavailableError
        There is none; it is never downloaded.
    """
    wanted = settings.cli_bin or "dagger"
    found = shutil.which(wanted)
    if found is None:
        where = f"at {wanted} (DAGGER_KERNEL_CLI_BIN)" if settings.cli_bin else "in PATH"
        raise EngineUnavailableError(
            f"There is no dagger command {where}.",
            engine=faults.NAME,
            remedy="Install the Dagger CLI of the engine's version and put it in PATH, or name it in "
            "DAGGER_KERNEL_CLI_BIN; or use DAGGER_KERNEL_ENGINE=local.",
        )
    return os.path.abspath(found)  # the session works in another directory


def child_environment(settings: Settings) -> dict[str, str]:
    """Return the environment of the session process: engine and privacy for it alone."""
    hidden = ("DAGGER_SESSION_", "DAGGER_CLOUD_", "OTEL_", "TRACEPARENT", "TRACESTATE", "BAGGAGE")
    env = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    env |= {"DO_NOT_TRACK": "1", "DAGGER_NO_NAG": "1", "DAGGER_NO_UPDATE_CHECK": "1"}
    if settings.runner_host:
        env["_EXPERIMENTAL_DAGGER_RUNNER_HOST"] = settings.runner_host
    return env


async def probe_host(runner_host: str) -> None:
    """Try whether anything listens at a runner host of scheme ``unix`` or ``tcp``.

    The dagger command itself would try without end.

    Raises
    ------
    EngineConnectionError
    """
    parts = urlsplit(runner_host)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            if parts.scheme == "unix":
                _, writer = await asyncio.open_unix_connection(parts.path)
            elif parts.scheme == "tcp" and parts.hostname and parts.port:
                _, writer = await asyncio.open_connection(parts.hostname, parts.port)
            else:
                return  # the command knows more schemes, such as docker-container://
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        if isinstance(error, socket.gaierror):
            why = f"unknown host ({error.strerror})"
        elif isinstance(error, OSError) and error.errno:
            why = os.strerror(error.errno)
        elif isinstance(error, TimeoutError):
            why = f"no answer within {PROBE_SECONDS:g} s"
        else:
            why = str(error)
        raise EngineConnectionError(
            f"No Dagger engine answers at {runner_host}: {why}.",
            engine=faults.NAME,
            remedy=faults.REMEDIES[EngineConnectionError],
        ) from None
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@dataclass
class SessionProcess:
    """A running ``dagger session``. It ends when its stdin closes, so never outlives this process."""

    process: asyncio.subprocess.Process
    port: int = 0
    token: str = ""
    words: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    _drain: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, settings: Settings, directory: Path) -> SessionProcess:
        """Start a session in a private directory and wait until it is connected to the engine.

        The caller sets the time limit; cancelling ends the process.

        Raises
        ------
        EngineUnavailableError, EngineConnectionError, EngineVersionError
        """
        command = [find_cli(settings), "session", "--silent"]
        command += ["--label", "dagger.io/sdk.name:python"]
        if settings.runner_host:
            await probe_host(settings.runner_host)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=directory,
                env=child_environment(settings),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                # An interrupt of the kernel's process group is not meant for the session.
                start_new_session=True,
            )
        except OSError as error:
            raise EngineUnavailableError(
                f"The dagger command {command[0]} cannot be started: {error.strerror}.",
                engine=faults.NAME,
                remedy=faults.REMEDIES[EngineUnavailableError],
            ) from error
        session = cls(process)
        session._drain = asyncio.create_task(session._read_words())
        try:
            await session._handshake()
        except BaseException:
            await session.end(patience=0)
            raise
        return session

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.returncode is None

    async def end(self, patience: float = END_SECONDS) -> None:
        """End the process: politely, so that the engine hears of it; then by force."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        # Not `asyncio.timeout`: before Python 3.11.4 it ends no wait in a task that is being cancelled.
        ending = asyncio.ensure_future(self.process.wait())
        await asyncio.wait([ending], timeout=patience)
        if not ending.done():
            # With its engine gone it would try to say goodbye for minutes.
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
        await ending
        if self._drain is not None:
            self._drain.cancel()
            await asyncio.gather(self._drain, return_exceptions=True)

    async def _handshake(self) -> None:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        try:
            answer = json.loads(line)
            self.port, self.token = int(answer["port"]), str(answer["session_token"])
        except (ValueError, KeyError, TypeError):
            await self._raise_last_words(line)

    async def _raise_last_words(self, line: bytes) -> None:
        """Tell why no session came of it."""
        try:
            async with asyncio.timeout(END_SECONDS):
                await self.process.wait()
                if self._drain is not None:
                    await asyncio.shield(self._drain)
        except TimeoutError:
            pass
        words = [text for text in self.words if text.strip()]
        told = next((text for text in words if "Error" in text), words[-1] if words else "")
        text = faults.brief(told or line.decode("utf-8", "replace") or "it said nothing")
        found = faults.classify(Exception(text))
        kind: type[EngineError] = EngineConnectionError
        if issubclass(found, (EngineVersionError, EngineUnavailableError)):
            kind = found
        what = {
            EngineVersionError: "The Dagger engine and the dagger command do not fit together",
            EngineUnavailableError: "The dagger command found no engine",
        }.get(kind, "There is no session with the Dagger engine")
        raise kind(f"{what}: {text}.", engine=faults.NAME, remedy=faults.REMEDIES[kind])

    async def _read_words(self) -> None:
        """Drain stderr: a full pipe would stop the session."""
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(1 << 16):
            self.words.extend(chunk.decode("utf-8", "replace").splitlines())

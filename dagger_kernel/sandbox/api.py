r"""The Python API: a sandbox for scripts and agents, without Jupyter.

::

    from dagger_kernel import Sandbox

    with Sandbox() as sandbox:
        sandbox.upload("data.csv", b"a,b\\n1,2\\n")
        execution = sandbox.run("import pandas as pd; pd.read_csv('attachments/data.csv')")
        print(execution.text, execution.logs.stdout, execution.error)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, BinaryIO, Self, TypeVar

from ..engines.base import FileInfo
from ..settings import Settings
from ..steps import Language, Limits
from .cell import Cell
from .execution import Execution, ExecutionError, Rich, Streaming
from .session import SandboxSession

T = TypeVar("T")
OnText = Callable[[str], None]


class AsyncSandbox:
    """A sandbox, for use in one event loop.

    Make one with ``async with AsyncSandbox.open() as sandbox``.
    """

    def __init__(self, session: SandboxSession) -> None:
        self._session = session

    @classmethod
    async def open(cls, sandbox_id: str | None = None, **settings: Any) -> Self:
        """Open a sandbox again, or a new one.

        Parameters
        ----------
        sandbox_id
            None: a new sandbox.
        settings
            Any of `dagger_kernel.settings.Settings`, by name.

        Raises
        ------
        DaggerKernelError
        """
        session = await SandboxSession.open(Settings.load(**settings), sandbox_id=sandbox_id)
        session.start_warming()
        return cls(session)

    @property
    def id(self) -> str:
        """The sandbox's id: give it to `open` to continue later, also after a crash."""
        return self._session.id

    async def run(
        self,
        code: str,
        *,
        language: str = "python",
        on_stdout: OnText | None = None,
        on_stderr: OnText | None = None,
        on_result: Callable[[Rich], None] | None = None,
        on_error: Callable[[ExecutionError], None] | None = None,
        stdin: Callable[[str], str] | None = None,
        limits: Limits | None = None,
        env: dict[str, str] | None = None,
    ) -> Execution:
        """Run code as the next cell.

        Parameters
        ----------
        on_stdout, on_stderr, on_result, on_error
            Called while the cell runs.
        stdin
            Answers ``input()``; None: the cell's question fails.
        limits
            None: those of the settings.
        env
            Environment variables for this cell only; never logged, and values of eight characters or more are
            masked in what it says.

        Raises
        ------
        DaggerKernelError
            The cell was not run, or the engine failed. A failing cell is no exception: see
            `Execution.error`.
        """
        cell = Cell(
            source=code,
            language=Language(language),
            execution_count=self._session.next_execution_count,
            allow_stdin=stdin is not None,
            limits=limits,
            env=env or {},
        )
        listener = Streaming(on_stdout, on_stderr, on_result, on_error, stdin)
        return Execution.of(await self._session.run(cell, listener))

    def secret(self, name: str, value: str | None = None) -> None:
        """Give a secret to the cells that follow, as an environment variable.

        It is never logged or saved, and masked in what cells say.

        Parameters
        ----------
        value
            None: the one that the administrator provides under this name.

        Raises
        ------
        SecretError
            There is none, or it cannot be masked.
        """
        self._session.give_secret(name, value)

    def forget_secret(self, name: str) -> bool:
        """Take a secret away from the cells that follow; return whether there was one."""
        return self._session.forget_secret(name)

    async def interrupt(self) -> None:
        """Interrupt the running cell."""
        await self._session.interrupt()

    async def upload(self, name: str, data: bytes | BinaryIO) -> str:
        """Put a file into ``attachments/``; return its path below ``/home/sandbox``.

        Raises
        ------
        ValueError
            It was left out: too large, or no usable name.
        """
        return (await self.upload_many({name: data}))[name]

    async def upload_many(self, files: Mapping[str, bytes | BinaryIO]) -> dict[str, str]:
        """Put files into ``attachments/`` as one step; return each one's path below ``/home/sandbox``.

        Raises
        ------
        ValueError
            Some were left out: too large, or no usable name. The others are there.
        """
        done = await self._session.upload(files.items())
        if done.skipped:
            left = "; ".join(f"{name!r}: {why}" for name, why in done.skipped.items())
            raise ValueError(f"Not uploaded: {left}")
        return done.paths

    async def recompute(self, name: str) -> Execution:
        """Make a lost variable again, as the next cell: run the cells that made it once more.

        An object that can be saved is kept from then on. One that cannot (a generator, a socket) is
        made again by each cell that uses it. `Execution.error` says why, if it could not be made.

        Parameters
        ----------
        name
            The variable.

        Raises
        ------
        ValueError
            It is no name of a variable.
        DaggerKernelError
            As for `run`.
        """
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name of a variable")
        return await self.run(f"%sandbox recompute {name}")

    async def files(self, path: str = "", *, recursive: bool = False) -> list[FileInfo]:
        """List a directory below ``/home/sandbox``."""
        return await self._session.files(path, recursive=recursive)

    async def download(self, path: str) -> bytes:
        """Return a file's bytes.

        Raises
        ------
        FileNotFoundError, SandboxPathError
        """
        return await self._session.download(path)

    async def rewind(self, step: int) -> None:
        """Continue from an earlier step (0: from the beginning)."""
        await self._session.rewind(step)

    async def close(self) -> None:
        """Release everything; the sandbox stays in the log. Idempotent."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


class Sandbox:
    """A sandbox, for code without an event loop. Safe to use from any thread, one call at a time.

    Parameters
    ----------
    sandbox_id
        None: a new sandbox.
    settings
        Any of `dagger_kernel.settings.Settings`, by name.
    """

    def __init__(self, sandbox_id: str | None = None, **settings: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="dagger-kernel-sandbox", daemon=True
        )
        self._thread.start()
        try:
            self._inner = self._wait(AsyncSandbox.open(sandbox_id, **settings))
        except BaseException:
            self._stop()
            raise

    @classmethod
    def open(cls, sandbox_id: str, **settings: Any) -> Self:
        """Open a sandbox again where it was."""
        return cls(sandbox_id, **settings)

    @property
    def id(self) -> str:
        """The sandbox's id."""
        return self._inner.id

    def run(self, code: str, **options: Any) -> Execution:
        """Run code as the next cell; see `AsyncSandbox.run`."""
        return self._wait(self._inner.run(code, **options))

    def secret(self, name: str, value: str | None = None) -> None:
        """Give a secret to the cells that follow; see `AsyncSandbox.secret`."""
        self._call(self._inner.secret, name, value)

    def forget_secret(self, name: str) -> bool:
        """Take a secret away from the cells that follow; return whether there was one."""
        return self._call(self._inner.forget_secret, name)

    def interrupt(self) -> None:
        """Interrupt the cell that another thread runs."""
        self._wait(self._inner.interrupt())

    def upload(self, name: str, data: bytes | BinaryIO) -> str:
        """Put a file into ``attachments/``; see `AsyncSandbox.upload`."""
        return self._wait(self._inner.upload(name, data))

    def upload_many(self, files: Mapping[str, bytes | BinaryIO]) -> dict[str, str]:
        """Put files into ``attachments/`` as one step; see `AsyncSandbox.upload_many`."""
        return self._wait(self._inner.upload_many(files))

    def recompute(self, name: str) -> Execution:
        """Make a lost variable again, as the next cell; see `AsyncSandbox.recompute`."""
        return self._wait(self._inner.recompute(name))

    def files(self, path: str = "", *, recursive: bool = False) -> list[FileInfo]:
        """List a directory below ``/home/sandbox``."""
        return self._wait(self._inner.files(path, recursive=recursive))

    def download(self, path: str) -> bytes:
        """Return a file's bytes; see `AsyncSandbox.download`."""
        return self._wait(self._inner.download(path))

    def rewind(self, step: int) -> None:
        """Continue from an earlier step."""
        self._wait(self._inner.rewind(step))

    def close(self) -> None:
        """Release everything; the sandbox stays in the log. Idempotent."""
        if not self._loop.is_closed():
            self._wait(self._inner.close())
            self._stop()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        async def call() -> T:
            return function(*args)

        return self._wait(call())

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

"""Build bases and the runner's copy, and find them again."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import filelock
import platformdirs
import uv

from ...errors import BaseBuildError, RoomLostError, StorageFullError
from ...settings import Settings
from ..base import Base, BlobSource, Progress
from ..known import KnownBases
from ..layout import HOME, VENV
from ..memory import Memory
from ..runner_source import RUNNER_SOURCE, runner_digest
from .container import Interpreter, common
from .interpreter import find_interpreter
from .layer import name_of
from .layers import PARTS
from .leases import Leases
from .recipe import Recipe
from .trees import remove

LOG_LINES = 15


class Bases:
    """The bases below the data directory. Methods belong to one event loop."""

    def __init__(self, settings: Settings, blobs: BlobSource) -> None:
        self._settings = settings
        self._blobs = blobs
        self._known = KnownBases(settings, "local")
        self.root = settings.bases_path
        self._interpreters = Memory(self.root / ".interpreters.json")
        self.leases = Leases(self.root)

    def path(self, digest: str) -> Path:
        """Return the directory of a base."""
        return self.root / name_of(digest)

    def exists(self, digest: str) -> bool:
        """Whether a base is there, complete."""
        return (self.path(digest) / "fs" / ".base-complete").is_file()

    def current(self) -> str | None:
        """Return the digest of the base for new sandboxes, if one was made before."""
        return self._known.get(Recipe.wanted(self._settings, self.interpreter()).name)

    def sources(self, digest: str) -> list[str]:
        """Return the addresses that a base's packages came from."""
        return Recipe.from_blob(self._blobs, digest).sources()

    def interpreter(self) -> Interpreter:
        """Return the interpreter that the settings lead to."""
        return find_interpreter(self._settings.python, self._interpreters)

    async def prepare(self, progress: Progress, digest: str | None) -> Base:
        """Make sure a base exists; see `Engine.prepare`."""
        interpreter = await asyncio.to_thread(self.interpreter)
        wanted = Recipe.wanted(self._settings, interpreter)
        known = digest or self._known.get(wanted.name)
        if known is None or not self.exists(known):
            self._make_root()
            async with self._lock(name_of(known or "new"), progress):
                known = known or self._known.get(wanted.name)
                recipe = Recipe.from_blob(self._blobs, known) if known else wanted
                if known is None or not self.exists(known):
                    known = await self._build(recipe, interpreter, progress, known)
                if digest is None:
                    self._known.put(wanted.name, known)
        return Base(
            digest=known,
            runner_digest=runner_digest(),
            python=interpreter.version,
            description=f"Python {interpreter.version} with {self._settings.packages}",
        )

    def use(self, digest: str, runner: Path) -> str:
        """Take a lease on a base and a copy of the runner; return its name, for `leases.end`.

        Raises
        ------
        RoomLostError
            The base was collected a moment ago.
        """
        name = secrets.token_hex(8)
        with self.leases.gate():
            if not (self.exists(digest) and runner.is_dir()):
                raise RoomLostError("The base was removed meanwhile.", engine="local")
            self.leases.take(name, [name_of(digest), runner.name])
        return name

    def place_runner(self) -> Path:
        """Make sure a compiled copy of the runner exists by content hash; return the directory above it."""
        interpreter = self.interpreter()
        place = self.root / f"runner-{runner_digest()[:16]}-{interpreter.version}"
        if not place.is_dir():
            stage = self.root / f".runner-{secrets.token_hex(6)}"
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(RUNNER_SOURCE, stage / "dagger_kernel_runner", ignore=ignore)
            # The sandbox sees it read-only: uncompiled, every start would compile it again.
            compiling = [interpreter.executable, "-I", "-m", "compileall", "-q", os.fspath(stage)]
            subprocess.run(compiling, check=False, stdin=subprocess.DEVNULL)
            try:
                os.rename(stage, place)
            except OSError as error:
                remove(stage)
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
        return place

    def _make_root(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextlib.asynccontextmanager
    async def _lock(self, name: str, progress: Progress) -> AsyncIterator[None]:
        """Let one process build; the others wait and then find the base."""
        lock = filelock.FileLock(self.root / f".{name}.lock")
        while True:
            try:
                lock.acquire(blocking=False)
                break
            except filelock.Timeout:
                progress("another process is building the base")
                await asyncio.sleep(0.3)
        try:
            yield
        finally:
            lock.release()

    async def _build(
        self, recipe: Recipe, interpreter: Interpreter, progress: Progress, digest: str | None
    ) -> str:
        stage = self.root / f".building-{secrets.token_hex(6)}"
        try:
            for part in PARTS:
                (stage / "fs" / part).mkdir(parents=True, mode=0o755)
            (stage / "fs" / "tmp").chmod(0o1777)
            home = stage / "fs" / "home/sandbox"
            (home / "pyproject.toml").write_text(recipe.project(), "utf-8")
            if recipe.lock:
                (home / "uv.lock").write_text(recipe.lock, "utf-8")
            progress("building the base: resolving packages")
            sync = ["/opt/uv", "sync", "--no-install-project", "--compile-bytecode"]
            sync += ["--python", interpreter.executable, *(["--frozen"] if recipe.lock else [])]
            await self._run(stage, interpreter, sync, progress)
            progress("building the base: warming up")
            # The font cache and whatever else libraries write at their first import.
            warm = "import matplotlib.pyplot, pandas" if "matplotlib" in recipe.packages else "pass"
            await self._run(stage, interpreter, [f"{VENV}/bin/python", "-c", warm], progress)
            (stage / "fs" / ".base-complete").touch()
            if digest is None:
                lock = (home / "uv.lock").read_text("utf-8")
                digest = Recipe(recipe.python, recipe.platform, recipe.packages, lock).to_blob(
                    self._blobs
                )
            target = self.path(digest)
            if target.exists():
                remove(target)
            os.rename(stage, target)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFullError("No space is left to build the base.") from error
            raise BaseBuildError(
                f"The base could not be built: {error}.", engine="local"
            ) from error
        finally:
            if stage.exists():
                remove(stage)
            progress("")
        return digest

    async def _run(
        self, stage: Path, interpreter: Interpreter, command: list[str], progress: Progress
    ) -> None:
        cache = Path(platformdirs.user_cache_dir("dagger_kernel")) / "uv"
        cache.mkdir(parents=True, exist_ok=True)
        arguments = common(self._settings, interpreter, self.root, network="host")
        arguments += ["--bind", os.fspath(stage / "fs/home/sandbox"), HOME, "--tmpfs", "/tmp"]  # noqa: S108
        arguments += [
            "--ro-bind",
            uv.find_uv_bin(),
            "/opt/uv",
            "--bind",
            os.fspath(cache),
            "/opt/cache",
        ]
        arguments += ["--setenv", "UV_CACHE_DIR", "/opt/cache", "--unsetenv", "UV_NO_CACHE"]
        arguments += ["--chdir", HOME, "--", *command]
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        tail: list[str] = []
        try:
            assert process.stdout is not None
            async for raw in process.stdout:
                line = raw.decode("utf-8", "replace").rstrip()
                tail = [*tail[1 - LOG_LINES :], line]
                if not line.startswith((" + ", " - ", " ~ ")):
                    progress(f"building the base: {line}")
            code = await process.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        if code != 0:
            raise BaseBuildError(
                f"The base could not be built ({os.path.basename(command[0])} ended with exit code {code}).",
                engine="local",
                log_tail="\n".join(tail),
            )

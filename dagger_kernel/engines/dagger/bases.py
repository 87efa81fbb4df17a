"""Make the container that chains start from, once per session, and say what it is."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...errors import BaseBuildError, BlobError, DaggerKernelError
from ...settings import Settings
from ..base import Base, BlobSource, Progress
from ..image.recipe import ENVIRONMENT, MARKER, commands
from ..image.recipe import FORMAT as IMAGE_FORMAT
from ..known import KnownBases
from ..layout import HOME, RUNNER_NEEDS
from ..runner_source import runner_digest
from . import dress, faults
from .connection import Connection
from .sources import Source, base_path, wanted

if TYPE_CHECKING:
    import dagger

LOG_LINES = 15
NAME_OF = re.compile(r"[^\w.-]")

PROBE = """
import importlib.metadata as m, json, sys
found = {}
for name in sys.argv[1:]:
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: pass
base = getattr(sys, '_base_executable', '') or sys.executable
print(json.dumps({'python': sys.version.split()[0], 'base': base, 'found': found}))
"""
ADD = (
    'if [ -f pyproject.toml ]; then exec uv add --compile-bytecode "$@"; '
    'else exec uv pip install --compile-bytecode "$@"; fi'
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A base of the running session.

    Attributes
    ----------
    base
        What the contract says of it.
    container
        The root of every chain: dressed, evaluated.
    python
        The base's own interpreter, which the sandbox's user cannot change.
    generation
        Of the connection that made it.
    """

    base: Base
    container: dagger.Container
    python: str
    generation: int


class Bases:
    """Belongs to one event loop."""

    def __init__(self, settings: Settings, blobs: BlobSource, connection: Connection) -> None:
        self._settings = settings
        self._blobs = blobs
        self._connection = connection
        self._known = KnownBases(settings, "dagger")
        self._prepared: dict[str, Prepared] = {}

    def current(self) -> str | None:
        """Return the digest of the base for new sandboxes, if one was made before."""
        source = wanted(self._settings)
        # A root directory's content is known only after the engine has read it.
        return self._known.get(source.name)

    async def prepare(self, progress: Progress, digest: str | None) -> Prepared:
        """Make sure a base exists; see `Engine.prepare`."""
        client = await self._connection.client()
        name = digest or ""
        ready = self._prepared.get(name)
        if ready is None or ready.generation != self._connection.generation:
            try:
                ready = await self._make(client, progress, digest)
            except DaggerKernelError as error:
                if error.__cause__ is not None:
                    self._connection.note(error.__cause__)
                raise
            finally:
                progress("")
            self._prepared[name] = self._prepared[ready.base.digest] = ready
        return ready

    async def _make(
        self, client: dagger.Client, progress: Progress, digest: str | None
    ) -> Prepared:
        asked = wanted(self._settings) if digest is None else None
        known = digest if asked is None else self._known.get(asked.name)
        source = asked
        if known is not None:
            try:
                source = Source.from_blob(self._blobs, known)
            except BlobError:
                if asked is None:
                    raise
                known = None
        assert source is not None
        progress(f"preparing the base: {source.description}")
        raw, source = await self._raw(client, source, recorded=digest is not None)
        container = dress.with_environment(raw, self._settings)
        container, source, facts = await self._complete(container, source, progress)
        container = dress.with_runner(container, client, self._connection.directory)
        with faults.translated("preparing the base"):
            container = await container.sync()
        made = source.to_blob(self._blobs)
        if digest is not None and made != digest:
            raise self._other(source)
        if asked is not None and made != known:
            self._known.put(asked.name, made)
        base = Base(
            digest=made,
            runner_digest=runner_digest(),
            python=facts["python"],
            description=f"Python {facts['python']}, {source.description}",
        )
        return Prepared(base, container, facts["base"], self._connection.generation)

    async def _raw(
        self, client: dagger.Client, source: Source, *, recorded: bool
    ) -> tuple[dagger.Container, Source]:
        """Return the container of a source as it comes, and the source with its content known."""
        if source.kind == "image":
            container = client.container().from_(source.content)
            await self._check_marker(container, source)
            return container, source
        if source.kind == "recipe":
            return await self._build(client, source)
        if not self._settings.base_path:
            raise self._other(source)
        path = os.fspath(base_path(self._settings))
        if source.kind == "archive":
            if recorded and wanted(self._settings).content != source.content:
                raise self._other(source)
            return client.container().import_(client.host().file(path)), source
        directory = client.host().directory(path)
        with faults.translated("reading the base's root directory"):
            content = await directory.digest()
        if source.content not in ("", content):
            if recorded:
                raise self._other(source)
            source = replace(source, added=())
        # The way into the engine loses owners.
        owned = directory.chown(HOME, dress.USER)
        return client.container().with_rootfs(owned), replace(source, content=content)

    async def _check_marker(self, container: dagger.Container, source: Source) -> None:
        try:
            text = await container.file(MARKER).contents()
        except Exception as error:
            if self._connection.note(error):
                raise faults.translate(error, "reading the base image") from error
            if "no such file" not in str(error):
                raise self._failed("could not be fetched", error) from error
            text = "{}"
        try:
            found = json.loads(text).get("dagger_kernel_base")
        except (ValueError, AttributeError):
            found = None
        if found != IMAGE_FORMAT:
            raise BaseBuildError(
                f"The image {source.content} is no base of this version of dagger_kernel: {MARKER} says "
                f"{found!r}, not {IMAGE_FORMAT}. Build it from dagger_kernel/engines/image/Dockerfile.",
                engine=faults.NAME,
            )

    async def _build(
        self, client: dagger.Client, source: Source
    ) -> tuple[dagger.Container, Source]:
        """Build the recipe; learn its lock the first time."""
        container = client.container().from_(source.content)
        env = dress.sandbox_environment(self._settings)
        for name in sorted(dress.VOLATILE & env.keys()):
            container = container.with_volatile_variable(name, env[name])
        if source.lock:
            for name, text in (("pyproject.toml", source.project), ("uv.lock", source.lock)):
                container = container.with_new_file(f"{HOME}/{name}", text, owner="1000:1000")
        for name, value in ENVIRONMENT.items():
            container = container.with_env_variable(name, value)
        for command in commands(source.packages, locked=bool(source.lock)):
            container = container.with_user(command.user).with_exec(["sh", "-c", command.text])
        try:
            container = await container.sync()
            if not source.lock:
                lock = await container.file(f"{HOME}/uv.lock").contents()
                project = await container.file(f"{HOME}/pyproject.toml").contents()
                source = replace(source, lock=lock, project=project)
                return await self._build(client, source)
        except Exception as error:
            if isinstance(error, DaggerKernelError):
                raise
            if self._connection.note(error):
                raise faults.translate(error, "building the base") from error
            raise self._failed("could not be built", error) from error
        return container, source

    async def _complete(
        self, container: dagger.Container, source: Source, progress: Progress
    ) -> tuple[dagger.Container, Source, dict[str, Any]]:
        """Add what the runner needs and the base lacks; return what the interpreter says."""
        # Names alone: a requirement such as "numpy>=2" is what a recipe asks for, not what is looked up.
        needs = [NAME_OF.split(text)[0] for text in (*source.packages, *RUNNER_NEEDS)]
        if source.added:
            container = self._add(container, list(source.added))
        facts = await self._probe(container, needs)
        missing = [name for name in needs if name not in facts["found"]]
        if not missing:
            return container, source, facts
        progress(f"preparing the base: adding {', '.join(missing)}")
        facts = await self._probe(self._add(container, missing), needs)
        pins = tuple(f"{name}=={facts['found'].get(name, '')}" for name in missing)
        if any(pin.endswith("==") for pin in pins):
            raise BaseBuildError(
                f"The base lacks {', '.join(missing)}, which could not be added.",
                engine=faults.NAME,
            )
        source = replace(source, added=(*source.added, *pins))
        return self._add(container, list(pins)), source, facts

    @staticmethod
    def _add(container: dagger.Container, names: list[str]) -> dagger.Container:
        return container.with_exec(["sh", "-c", ADD, "sh", *names])

    async def _probe(self, container: dagger.Container, needs: list[str]) -> dict[str, Any]:
        try:
            text = await container.with_exec([dress.PYTHON, "-P", "-c", PROBE, *needs]).stdout()
            facts: dict[str, Any] = json.loads(text)
        except Exception as error:
            if self._connection.note(error):
                raise faults.translate(error, "preparing the base") from error
            raise self._failed("cannot be used", error) from error
        return facts

    def _failed(self, what: str, error: Exception) -> DaggerKernelError:
        translated = faults.translate(error, "preparing the base")
        if not hasattr(translated, "engine"):
            return translated  # no space left
        words = [getattr(error, "stderr", ""), getattr(error, "stdout", "")]
        lines = "\n".join(text for text in words if isinstance(text, str)).splitlines()
        told = faults.brief(str(error))
        return BaseBuildError(
            f"The base {what}: {told}.",
            engine=faults.NAME,
            log_tail="\n".join(lines[-LOG_LINES:]),
        )

    def _other(self, source: Source) -> BaseBuildError:
        return BaseBuildError(
            f"The sandbox stands on another base than the settings name: {source.description}. "
            "Set DAGGER_KERNEL_BASE_IMAGE or DAGGER_KERNEL_BASE_PATH to that base again, or begin a new "
            "sandbox.",
            engine=faults.NAME,
        )

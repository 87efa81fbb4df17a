"""The REST API under ``/dagger-kernel/api``; `openapi` describes it.

Each method is authenticated, authorised (reading: action ``read``; everything that changes
something: action ``execute``) and answers only about sandboxes of the user who asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import tempfile
from typing import TYPE_CHECKING, Any, BinaryIO

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from tornado import web

from .._version import __version__
from ..errors import DaggerKernelError
from .archive import TooLargeError, write_archive, write_directory
from .base import RESOURCE, ApiError, SandboxHandler
from .multipart import MultipartError, MultipartReader, PartData, PartEnd, PartStart, boundary_of
from .openapi import document
from .paths import clean_path
from .service import PAGE
from .views import guess_mime, size_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ..steps import Step

ROOT = r"/dagger-kernel/api"
SANDBOX = ROOT + r"/sandboxes/(?P<sandbox_id>[0-9A-Za-z_-]{1,64})"
STEP = r"[0-9]{1,12}|[0-9a-f]{32}"
MAX_FILES = 1000
"""Files in one upload."""


class StateHandler(SandboxHandler):
    """Something of the state after a step."""

    async def step_asked_for(self, sandbox_id: str) -> Step | None:
        """Return the step that the query names, else the tip; None: the base."""
        if self.get_query_argument("step", ""):
            name = self.get_query_argument("step")
            if re.fullmatch(STEP, name) is None:
                raise ApiError(400, "ValueError", "step must be a sequence number or an id.")
            step, _ = await self.call(self.service.step, self.owner, sandbox_id, name)
            return step
        return await self.call(self.service.tip, self.owner, sandbox_id)


class SandboxesHandler(SandboxHandler):
    """All sandboxes of the user, or those of one notebook."""

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """List them, newest first."""
        notebook = self.get_query_argument("notebook", None, strip=False)
        names = None if notebook is None else await self._names(notebook)
        found = await self.call(self.service.sandboxes, self.owner, names)
        self.write_json({"sandboxes": found})

    @web.authenticated
    @authorized("execute")
    async def post(self) -> None:
        """Return the sandbox that the notebook's kernel continues, a new one if there is none."""
        body = self.get_json_body()
        notebook = body.get("notebook") if isinstance(body, dict) else None
        if not isinstance(notebook, str) or not notebook or "\0" in notebook:
            raise ApiError(400, "ValueError", "The body must be JSON with a notebook.")
        created = await self.call(self.service.begin, self.owner, (await self._names(notebook))[0])
        self.write_json(created, 201)

    async def _names(self, notebook: str) -> list[str]:
        """Return the names a kernel may have logged a notebook by, the likeliest first.

        JupyterLab knows the notebook by its path in the contents manager; the kernel was told the
        path on disk (`JPY_SESSION_NAME`), made in the same way as here. A kernel that still runs
        after the notebook was renamed knows the old path.
        """
        if "\0" in notebook:
            raise ApiError(400, "ValueError", "The notebook's path holds a NUL byte.")
        names = [notebook]
        with contextlib.suppress(web.HTTPError):  # no such path
            directory = self.kernel_manager.cwd_for_path(os.path.dirname(notebook))
            names.insert(0, os.path.join(directory, os.path.basename(notebook)))
        with contextlib.suppress(web.HTTPError, KeyError):  # no kernel runs for it
            session = await self.session_manager.get_session(path=notebook)
            kernel = self.kernel_manager.get_kernel(session["kernel"]["id"])
            told = (getattr(kernel, "_launch_args", None) or {}).get("env", {})
            if running := told.get("JPY_SESSION_NAME"):
                names.insert(0, running)
        return list(dict.fromkeys(names))


class OneSandboxHandler(SandboxHandler):
    """One sandbox."""

    @web.authenticated
    @authorized("read")
    async def get(self, sandbox_id: str) -> None:
        """Show it."""
        self.write_json(await self.call(self.service.sandbox_detail, self.owner, sandbox_id))


class StepsHandler(SandboxHandler):
    """The log of a sandbox."""

    @web.authenticated
    @authorized("read")
    async def get(self, sandbox_id: str) -> None:
        """List the steps after a sequence number."""
        after, limit = self.number("after", 0), self.number("limit", PAGE, least=1)
        self.write_json(await self.call(self.service.steps, self.owner, sandbox_id, after, limit))


class InheritedHandler(SandboxHandler):
    """The part of a fork's history that lies in other sandboxes."""

    @web.authenticated
    @authorized("read")
    async def get(self, sandbox_id: str) -> None:
        """List the steps."""
        self.write_json(await self.call(self.service.inherited, self.owner, sandbox_id))


class CachedHandler(SandboxHandler):
    """Which steps would not be replayed."""

    @web.authenticated
    @authorized("read")
    async def get(self, sandbox_id: str) -> None:
        """List the ids of the steps whose states the engine holds now."""
        tip = await self.call(self.service.tip, self.owner, sandbox_id)
        try:
            self.write_json({"cached": await self.states.cached(tip)})
        except DaggerKernelError as error:
            raise ApiError.of(error) from error


class StepHandler(SandboxHandler):
    """One step."""

    @web.authenticated
    @authorized("read")
    async def get(self, sandbox_id: str, name: str) -> None:
        """Show its source, outputs, files and state report."""
        self.write_json(await self.call(self.service.step_detail, self.owner, sandbox_id, name))


class ArtifactsHandler(SandboxHandler):
    """The files that came out of a sandbox or went into it."""

    @web.authenticated
    @authorized("read")
    async def get(self, sandbox_id: str) -> None:
        """List them with the steps they came from."""
        found = await self.call(self.service.artifacts, self.owner, sandbox_id)
        self.write_json({"artifacts": found})


class ArtifactHandler(SandboxHandler):
    """The bytes of one file that a step made or put in."""

    @web.authenticated
    @authorized("read")
    async def get(self, sandbox_id: str, name: str, path: str) -> None:
        """Send them."""
        await self._send(sandbox_id, name, path)

    @web.authenticated
    @authorized("read")
    async def head(self, sandbox_id: str, name: str, path: str) -> None:
        """Send the headers."""
        await self._send(sandbox_id, name, path)

    async def _send(self, sandbox_id: str, name: str, path: str) -> None:
        await self.call(clean_path, path)
        stored = await self.call(self.service.artifact, self.owner, sandbox_id, name, path)
        await self.send_blob(path, stored.blob, stored.size, stored.mime)


class ArchiveHandler(StateHandler):
    """Several files, or a directory, as one ZIP archive."""

    @web.authenticated
    @authorized("read")
    async def get(self, sandbox_id: str) -> None:
        """Send the files named by ``file=<step>/<path>``, a ``directory``, or the newest of all results."""
        directory = self.get_query_argument("directory", None, strip=False)
        if directory is not None:
            await self._send_directory(sandbox_id, directory)
            return
        wanted: list[tuple[str, str]] = []
        for item in self.get_query_arguments("file", strip=False):
            name, _, path = item.partition("/")
            if re.fullmatch(STEP, name) is None:
                raise ApiError(400, "ValueError", "file must be <step>/<path>.")
            wanted.append((name, await self.call(clean_path, path)))
        archive, size = await self.call(write_archive, self.service, self.owner, sandbox_id, wanted)
        await self._send(f"sandbox-{sandbox_id[:8]}.zip", archive, size)

    async def _send_directory(self, sandbox_id: str, path: str) -> None:
        await self.call(lambda: clean_path(path, empty=True))
        step = await self.step_asked_for(sandbox_id)
        name = path.rpartition("/")[2] or f"sandbox-{sandbox_id[:8]}"
        try:
            if step is None:
                raise FileNotFoundError(path)
            archive, size = await write_directory(self.states, step, path)
        except KeyError:
            raise ApiError(
                409,
                "StateNotCachedError",
                "The engine does not hold the state of this step.",
                kept="The log has the steps that made it.",
                remedy="Restore the step, then ask again.",
            ) from None
        except TooLargeError:
            raise ApiError(
                413,
                "FileTooLargeError",
                f"{path or 'The directory'!r} has too much for one archive.",
                remedy="Ask for a directory in it.",
            ) from None
        except DaggerKernelError as error:
            raise ApiError.of(error) from error
        except FileNotFoundError as error:
            raise ApiError(
                404, "FileNotFoundError", f"There is no directory {path!r} at this step."
            ) from error
        await self._send(f"{name}.zip", archive, size)

    async def _send(self, name: str, archive: BinaryIO, size: int) -> None:
        async def read(offset: int, length: int) -> AsyncIterator[bytes]:
            await asyncio.to_thread(archive.seek, offset)
            while length > 0 and (chunk := await asyncio.to_thread(archive.read, 1 << 18)):
                length -= len(chunk)
                yield chunk

        try:
            # Never the same archive twice: a range must not be continued from another one.
            self.request.headers.pop("Range", None)
            await self.send_file(name, size, "application/zip", os.urandom(8).hex(), read)
        finally:
            archive.close()


class FilesHandler(StateHandler):
    """Files in the state after any step."""

    @web.authenticated
    @authorized("read")
    async def get(self, sandbox_id: str, path: str) -> None:
        """List a directory or send a file."""
        await self._send(sandbox_id, path.removeprefix("/"))

    @web.authenticated
    @authorized("read")
    async def head(self, sandbox_id: str, path: str) -> None:
        """Send the headers."""
        await self._send(sandbox_id, path.removeprefix("/"))

    async def _send(self, sandbox_id: str, path: str) -> None:
        await self.call(lambda: clean_path(path, empty=True))
        step = await self.step_asked_for(sandbox_id)
        try:
            if step is None or not path:
                self.write_json(await self.states.listing(step, path))
                return
            try:
                kind, size = await self.states.stat(step, path)
            except KeyError:
                await self._from_log(step, path)
                return
            if kind == "directory":
                self.write_json(await self.states.listing(step, path))
            elif kind == "file":

                def read(offset: int, length: int) -> AsyncIterator[bytes]:
                    return self.states.read(step, path, offset, length)

                await self.send_file(path, size, guess_mime(path), f"{step.key[:32]}-{size}", read)
            else:
                raise ApiError(
                    400, "SandboxPathError", f"{path!r} is a {kind}, not a regular file."
                )
        except DaggerKernelError as error:
            raise ApiError.of(error) from error
        except FileNotFoundError as error:
            raise ApiError(
                404, "FileNotFoundError", f"There is no {path!r} at this step."
            ) from error

    async def _from_log(self, step: Step, path: str) -> None:
        """The state is not cached: what the log has of it is exported files and uploads."""
        known = await self.call(self.service.known_files, step)
        item = known.get(path)
        if item is None:
            self.write_json(await self.states.listing(step, path))
            return
        if item["blob"] is None:
            raise ApiError(
                409,
                "StateNotCachedError",
                f"{path!r} was not exported ({item['skipped']}) and the engine does not hold its state.",
                kept="The log has the steps that made it.",
                remedy="Restore the step, then ask again.",
            )
        await self.send_blob(path, item["blob"], item["size"], item["mime"])


class RestoreHandler(SandboxHandler):
    """Makes a state exist again by replay."""

    @web.authenticated
    @authorized("execute")
    async def post(self, sandbox_id: str, name: str) -> None:
        """Replay what is missing; answers when the state exists."""
        step, _ = await self.call(self.service.step, self.owner, sandbox_id, name)
        try:
            await self.states.restore(step)
        except DaggerKernelError as error:
            raise ApiError.of(error) from error
        self.write_json({"step": step.seq, "key": step.key})


class RestartHandler(SandboxHandler):
    """A new sandbox in place of another."""

    @web.authenticated
    @authorized("execute")
    async def post(self, sandbox_id: str) -> None:
        """Begin a new, empty sandbox for the same notebook; the old one stays in the log."""
        self.write_json(await self.call(self.service.restart, self.owner, sandbox_id), 201)


class ReopenHandler(SandboxHandler):
    """An older sandbox, continued."""

    @web.authenticated
    @authorized("execute")
    async def post(self, sandbox_id: str) -> None:
        """Begin a sandbox that starts where this one ended; it becomes the notebook's newest."""
        body = self.get_json_body() or {}
        seq = body.get("step") if isinstance(body, dict) else None
        if seq is not None and (not isinstance(seq, int) or isinstance(seq, bool) or seq < 1):
            raise ApiError(400, "ValueError", "step must be a whole number, 1 or more.")
        self.write_json(await self.call(self.service.reopen, self.owner, sandbox_id, seq), 201)


class RewindHandler(SandboxHandler):
    """A sandbox, continued from one of its earlier steps."""

    @web.authenticated
    @authorized("execute")
    async def post(self, sandbox_id: str) -> None:
        """Log a rewind; the next cell starts from the step it names."""
        body = self.get_json_body()
        seq = body.get("step") if isinstance(body, dict) else None
        if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
            raise ApiError(400, "ValueError", "step must be a whole number, 0 or more.")
        self.write_json(await self.call(self.service.rewind, self.owner, sandbox_id, seq), 201)


@web.stream_request_body
class UploadsHandler(SandboxHandler):
    """Takes files in. The body is read piece by piece and spooled to disk."""

    async def prepare(self) -> None:
        """Refuse before the body is read, not after."""
        self._files: list[tuple[str, BinaryIO]] = []
        self._skipped: list[dict[str, Any]] = []
        self._reader: MultipartReader | None = None
        self._problem: ApiError | None = None
        self._part: BinaryIO | None = None
        self._name, self._size, self._field = "", 0, bytearray()
        self._given_name: str | None = None
        await super().prepare()
        if self._finished or self.request.method != "POST":
            return
        if not self.current_user:
            raise web.HTTPError(403)
        if not await ensure_async(
            self.authorizer.is_authorized(self, self.current_user, "execute", RESOURCE)
        ):
            raise web.HTTPError(403, "Not authorised to put files into sandboxes.")
        sandbox_id = self.path_kwargs["sandbox_id"]
        await self.call(self.service.sandbox, self.owner, sandbox_id)
        self._limit = self.service.settings.file_bytes
        try:
            content_type = self.request.headers.get("Content-Type", "")
            self._reader = MultipartReader(boundary_of(content_type))
        except MultipartError as error:
            raise ApiError(415, "MultipartError", f"{error}.") from error

    def data_received(self, chunk: bytes) -> None:
        """Take a piece of the body. What goes wrong is told when all of it has been read."""
        if self._reader is None or self._problem is not None:
            return
        try:
            for event in self._reader.feed(chunk):
                if isinstance(event, PartStart):
                    self._begin(event)
                elif isinstance(event, PartData):
                    self._take(event.data)
                elif isinstance(event, PartEnd):
                    self._end_part()
        except MultipartError as error:
            self._problem = ApiError(400, "MultipartError", f"{error}.")
        except OSError as error:
            self._problem = ApiError(
                507, "StorageFullError", f"The upload cannot be kept: {error}."
            )

    def _begin(self, start: PartStart) -> None:
        self._size, self._part = 0, None
        self._field.clear()
        if start.filename is None:
            return
        self._name = start.filename if self._given_name is None else self._given_name
        self._given_name = None
        if len(self._files) + len(self._skipped) >= MAX_FILES:
            self._problem = ApiError(413, "ValueError", f"At most {MAX_FILES} files at a time.")
            return
        # Closed by on_finish, or by whoever took them.
        self._part = tempfile.TemporaryFile()  # noqa: SIM115

    def _take(self, data: bytes) -> None:
        self._size += len(data)
        if self._part is None:
            self._field += data[: max(0, 8192 - len(self._field))]
        elif self._size <= self._limit:
            self._part.write(data)

    def _end_part(self) -> None:
        if self._part is None:
            self._given_name = _json_name(bytes(self._field))
        elif self._size > self._limit:
            self._part.close()
            why = f"it is larger than the limit of {size_text(self._limit)}"
            self._skipped.append({"name": self._name, "size": self._size, "why": why})
        else:
            self._part.seek(0)
            self._files.append((self._name, self._part))
        self._part = None

    @web.authenticated
    @authorized("execute")
    async def post(self, sandbox_id: str) -> None:
        """Log the files as one step."""
        if self._problem is not None:
            raise self._problem
        if self._reader is None or not self._reader.complete:
            raise ApiError(400, "MultipartError", "The body ended early; nothing was logged.")
        if not self._files and not self._skipped:
            raise ApiError(400, "ValueError", "The body has no file.")
        if not self._files:
            skipped = self._skipped[0]
            raise ApiError(
                413,
                "FileTooLargeError",
                f"{skipped['name']!r} was not put in: {skipped['why']}.",
                remedy="An administrator can raise DAGGER_KERNEL_FILE_BYTES.",
            )
        done = await self.call(self.service.upload, self.owner, sandbox_id, self._files)
        done["skipped"] += self._skipped
        if done["step"]:
            self.states.incoming.put_in_soon(sandbox_id)
        self.write_json(done, 201 if done["step"] else 200)

    def on_finish(self) -> None:
        """Delete the spooled files."""
        for _, file in self._files:
            file.close()
        if self._part is not None:
            self._part.close()
        super().on_finish()


def _json_name(field: bytes) -> str | None:
    """Return a file's exact name from the field before it (browsers mangle some in the header)."""
    try:
        value = json.loads(field)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


class StatusHandler(SandboxHandler):
    """The engine, the limits, the version."""

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """Show them."""
        settings = self.service.settings
        self.write_json(
            {
                "version": __version__,
                "enabled": settings.enabled,
                "owner": self.owner,
                "engine": await self.states.describe(),
                "limits": settings.limits.to_json(),
                "packages": settings.packages.split(),
                "network": settings.network,
            }
        )


class OpenApiHandler(SandboxHandler):
    """The description of this API."""

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """Send it."""
        self.write_json(document(self.base_url))


HANDLERS: list[tuple[str, type[SandboxHandler]]] = [
    (ROOT + r"/sandboxes/?", SandboxesHandler),
    (SANDBOX + r"/?", OneSandboxHandler),
    (SANDBOX + r"/steps/?", StepsHandler),
    (SANDBOX + r"/inherited/?", InheritedHandler),
    (SANDBOX + r"/cached/?", CachedHandler),
    (SANDBOX + r"/steps/(?P<name>" + STEP + r")/?", StepHandler),
    (SANDBOX + r"/steps/(?P<name>" + STEP + r")/restore/?", RestoreHandler),
    (SANDBOX + r"/artifacts/?", ArtifactsHandler),
    (SANDBOX + r"/artifacts/(?P<name>" + STEP + r")/(?P<path>.+)", ArtifactHandler),
    (SANDBOX + r"/archive/?", ArchiveHandler),
    (SANDBOX + r"/files(?P<path>(?:/.*)?)", FilesHandler),
    (SANDBOX + r"/uploads/?", UploadsHandler),
    (SANDBOX + r"/restart-as-new/?", RestartHandler),
    (SANDBOX + r"/reopen/?", ReopenHandler),
    (SANDBOX + r"/rewind/?", RewindHandler),
    (ROOT + r"/status/?", StatusHandler),
    (ROOT + r"/openapi\.json", OpenApiHandler),
]

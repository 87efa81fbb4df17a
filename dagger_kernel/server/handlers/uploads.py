"""Files that go in."""

from __future__ import annotations

import json
import tempfile
from typing import Any, BinaryIO

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from tornado import web

from ..base import RESOURCE, ApiError, SandboxHandler
from ..multipart import MultipartError, MultipartReader, PartData, PartEnd, PartStart, boundary_of
from ..views import size_text

MAX_FILES = 1000
"""Files in one upload."""


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

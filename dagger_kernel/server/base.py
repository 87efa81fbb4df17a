"""What every handler shares: who asks, how errors are told, how bytes are sent."""

from __future__ import annotations

import asyncio
import functools
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado import web
from tornado.iostream import StreamClosedError

from ..errors import (
    BlobError,
    CapacityError,
    DaggerKernelError,
    EngineError,
    LogError,
    PermissionDeniedError,
    SandboxBusyError,
    SandboxDisabledError,
    SandboxNotFoundError,
    SandboxPathError,
    SettingError,
    StepNotFoundError,
    StorageFullError,
)
from .paths import disposition
from .ranges import UnsatisfiableRangeError, parse_range

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from .service import SandboxService
    from .states import StateFiles

RESOURCE = "dagger_kernel"
"""The resource Jupyter's authorizer is asked about.

``sandbox:read`` is the action ``read`` on it, ``sandbox:execute`` the action ``execute``.
"""

CHUNK = 256 * 1024
"""Bytes sent at a time."""

INLINE = {
    "application/json",
    "application/pdf",
    "image/avif",
    "image/bmp",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "text/csv",
    "text/markdown",
    "text/plain",
    "text/tab-separated-values",
}
"""Types that no browser runs code of. Everything else (HTML, SVG, XML ...) is only downloaded."""

_STATUS: tuple[tuple[type[DaggerKernelError], HTTPStatus], ...] = (
    (SandboxNotFoundError, HTTPStatus.NOT_FOUND),
    (StepNotFoundError, HTTPStatus.NOT_FOUND),
    (SandboxPathError, HTTPStatus.BAD_REQUEST),
    (SettingError, HTTPStatus.BAD_REQUEST),
    (PermissionDeniedError, HTTPStatus.FORBIDDEN),
    (SandboxDisabledError, HTTPStatus.FORBIDDEN),
    (SandboxBusyError, HTTPStatus.CONFLICT),
    (CapacityError, HTTPStatus.TOO_MANY_REQUESTS),
    (StorageFullError, HTTPStatus.INSUFFICIENT_STORAGE),
    (BlobError, HTTPStatus.GONE),
    (EngineError, HTTPStatus.SERVICE_UNAVAILABLE),
    (LogError, HTTPStatus.SERVICE_UNAVAILABLE),
)

Result = TypeVar("Result")


class ApiError(web.HTTPError):
    """An answer that is no success, in the words of `DaggerKernelError`."""

    def __init__(
        self, status: int, error: str, what: str, *, kept: str = "", remedy: str = ""
    ) -> None:
        super().__init__(status, what.replace("%", "%%"))
        self.body = {"error": error, "message": what, "kept": kept, "remedy": remedy}
        self.headers: dict[str, str] = {}

    @classmethod
    def of(cls, error: DaggerKernelError) -> ApiError:
        """Say one of the package's errors in HTTP."""
        status = next(
            (status for kind, status in _STATUS if isinstance(error, kind)),
            HTTPStatus.INTERNAL_SERVER_ERROR,
        )
        return cls(status, type(error).__name__, error.what, kept=error.kept, remedy=error.remedy)


class SandboxHandler(ExtensionHandlerMixin, APIHandler):
    """Base of the handlers."""

    auth_resource = RESOURCE

    @functools.cached_property
    def service(self) -> SandboxService:
        """The log. Opened by the first request that needs it.

        Raises
        ------
        ApiError
            It cannot be opened.
        """
        try:
            service: SandboxService = self.extensionapp.service
        except DaggerKernelError as error:
            raise ApiError.of(error) from error
        return service

    @property
    def states(self) -> StateFiles:
        """Files of any step's state."""
        states: StateFiles = self.extensionapp.states
        return states

    @property
    def owner(self) -> str:
        """Whose sandboxes the user of this request may see."""
        owner: str = self.extensionapp.owner_of(self.current_user, self.identity_provider)
        return owner

    async def call(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a blocking use case in a thread; its errors become answers.

        Raises
        ------
        ApiError
        """
        try:
            return await asyncio.to_thread(function, *args)
        except DaggerKernelError as error:
            raise ApiError.of(error) from error
        except FileNotFoundError as error:
            raise ApiError(404, "FileNotFoundError", f"There is no such file: {error}.") from error

    def decode_argument(self, value: bytes, name: str | None = None) -> str:
        """Decode a part of the URL; bytes that are no UTF-8 are surrogate-escaped, as in the log."""
        del name
        return value.decode("utf-8", "surrogateescape")

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        """Return a whole number from the query.

        Raises
        ------
        ApiError
            It is none, or too small.
        """
        text = self.get_query_argument(name, "")
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 12 or int(text) < least:
            raise ApiError(400, "ValueError", f"{name} must be a whole number, {least} or more.")
        return int(text)

    def write_json(self, value: Any, status: int = 200) -> None:
        """Finish with JSON (ASCII, so that any name in it is safe)."""
        self.set_status(status)
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(value))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Errors are JSON with the same fields everywhere."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, ApiError):
            body = error.body
            for name, value in error.headers.items():
                self.set_header(name, value)
        else:
            message = HTTPStatus(status_code).phrase
            if isinstance(error, web.HTTPError) and error.log_message:
                message = error.log_message
            body = {"error": type(error).__name__, "message": message, "kept": "", "remedy": ""}
            if status_code == HTTPStatus.FORBIDDEN:
                body["error"] = "PermissionDeniedError"
        self.clear_header("Content-Disposition")
        self.finish(json.dumps(body))

    def log_exception(self, kind: Any, value: Any, trace: Any) -> None:
        """Log what is our fault; a refused request is not."""
        if isinstance(value, ApiError) and value.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.debug("%s %s: %s", self.request.method, self.request.path, value.body)
            return
        super().log_exception(kind, value, trace)

    # -- bytes ---------------------------------------------------------------------------------

    @property
    def content_security_policy(self) -> str:
        """Nothing that this API sends may run anything, whatever it turns out to be."""
        return super().content_security_policy + "; sandbox"

    async def send_file(
        self,
        path: str,
        size: int,
        mime: str,
        etag: str,
        read: Callable[[int, int], AsyncIterator[bytes]],
    ) -> None:
        """Send bytes, or the range of them that was asked for.

        Parameters
        ----------
        path
            Names the download.
        etag
            Identifies the bytes; equal bytes, equal tag.
        read
            Takes offset and length.
        """
        tag = f'"{etag}"'
        inline = self.get_query_argument("inline", "") == "1" and mime in INLINE
        self.set_header("ETag", tag)
        self.set_header("Accept-Ranges", "bytes")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "private, max-age=0, must-revalidate")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.set_header("Content-Disposition", disposition(path, inline=inline))
        if self.request.headers.get("If-None-Match", "") in (tag, "*"):
            self.set_status(304)
            await self._end(mime)
            return
        offset, length = 0, size
        wanted = self.request.headers.get("Range")
        if self.request.headers.get("If-Range", tag) != tag:
            wanted = None
        try:
            part = parse_range(wanted, size)
        except UnsatisfiableRangeError:
            refusal = ApiError(416, "RangeError", f"The file has {size} bytes.")
            refusal.headers["Content-Range"] = f"bytes */{size}"
            raise refusal from None
        if part is not None:
            offset, length = part
            self.set_status(206)
            self.set_header("Content-Range", f"bytes {offset}-{offset + length - 1}/{size}")
        self.set_header("Content-Type", _header_type(mime))
        self.set_header("Content-Length", str(length))
        if self.request.method != "HEAD" and length:
            try:
                async for chunk in read(offset, length):
                    self.write(chunk)
                    await self.flush()
            except StreamClosedError:
                return  # the reader went away
        await self._end(mime)

    async def _end(self, mime: str) -> None:
        try:
            await self.finish(set_content_type=_header_type(mime))
        except StreamClosedError:
            return

    async def send_blob(self, path: str, digest: str, size: int, mime: str) -> None:
        """Send a blob of the store."""

        async def read(offset: int, length: int) -> AsyncIterator[bytes]:
            blob = await self.call(self.service.open_blob, digest)
            try:
                await asyncio.to_thread(blob.seek, offset)
                while length > 0:
                    chunk = await asyncio.to_thread(blob.read, min(CHUNK, length))
                    if not chunk:
                        return
                    length -= len(chunk)
                    yield chunk
            finally:
                await asyncio.to_thread(blob.close)

        await self.send_file(path, size, mime, digest, read)


def _header_type(mime: str) -> str:
    """Return a media type as it is safe in a header; text is UTF-8, HTML is never called HTML."""
    if not mime.isascii() or not mime.isprintable() or "/" not in mime or ";" in mime:
        return "application/octet-stream"
    if mime in ("text/html", "application/xhtml+xml", "text/xml", "application/xml"):
        return "text/plain; charset=utf-8"
    return f"{mime}; charset=utf-8" if mime.startswith("text/") else mime

"""Files that came out: artifacts, archives, the files of any state."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from typing import TYPE_CHECKING, BinaryIO

from jupyter_server.auth.decorator import authorized
from tornado import web

from ...errors import DaggerKernelError
from ..archive import TooLargeError, write_archive, write_directory
from ..base import ApiError, SandboxHandler
from ..paths import clean_path
from ..routes import STEP
from ..views import guess_mime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ...steps import Step


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

    @contextlib.contextmanager
    def told(self, what: str) -> Iterator[None]:
        """Turn what goes wrong with a state into an answer; ``what`` is not there."""
        try:
            yield
        except DaggerKernelError as error:
            raise ApiError.of(error) from error
        except FileNotFoundError as error:
            raise ApiError(404, "FileNotFoundError", f"There is no {what} at this step.") from error


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
            with self.told(f"directory {path!r}"):
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
        with self.told(repr(path)):
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

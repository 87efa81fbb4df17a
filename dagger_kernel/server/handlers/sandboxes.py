"""Sandboxes: list, show, begin, restart, reopen, rewind."""

from __future__ import annotations

import contextlib
import os

from jupyter_server.auth.decorator import authorized
from tornado import web

from ..base import ApiError, SandboxHandler


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

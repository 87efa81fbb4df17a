"""Steps: a sandbox's log, what of it is cached, restoring a state."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from ...errors import DaggerKernelError
from ..base import ApiError, SandboxHandler
from ..service import PAGE


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

"""What this server is: status and description."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from ..._version import __version__
from ..base import SandboxHandler
from ..openapi import document


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

"""The Jupyter Server extension."""

from __future__ import annotations

import contextlib
import getpass
import os
import threading
from typing import Any

from jupyter_server.auth.identity import (
    IdentityProvider,
    LegacyIdentityProvider,
    PasswordIdentityProvider,
)
from jupyter_server.extension.application import ExtensionApp
from traitlets import Enum, default

from ..settings import Settings
from .authorizer import SandboxAuthorizer
from .handlers import HANDLERS
from .service import SandboxService
from .states import StateFiles


class DaggerKernelApp(ExtensionApp):
    """Serves the sandboxes' log and files under ``/dagger-kernel/api``.

    Works when no kernel runs: everything but bytes of unexported files comes from the log.
    """

    name = "dagger_kernel"
    description = __doc__
    extension_url = "/dagger-kernel/api/status"
    load_other_extensions = True

    owner_from = Enum(
        ["auto", "server", "user"],
        help=(
            "Whose sandboxes a request may see. 'server': those of the account the server runs as,"
            " which is the owner its kernels log (DAGGER_KERNEL_OWNER or the operating system's"
            " user). 'user': those of the authenticated user's name. 'auto': the account's for a"
            " token or password and for the JupyterHub user whose server this is; everybody else"
            " on a shared server sees only what is logged under their own name."
        ),
    ).tag(config=True)

    @default("owner_from")
    def _default_owner_from(self) -> str:
        return "auto"

    def initialize_settings(self) -> None:
        """Prepare; nothing is opened before the first request. From now on kernels are authorised too."""
        self._lock = threading.Lock()
        self._service: SandboxService | None = None
        self._states: StateFiles | None = None
        # The server takes these settings over.
        if not isinstance(self.settings["authorizer"], SandboxAuthorizer):
            self.settings["authorizer"] = SandboxAuthorizer(self.settings["authorizer"])

    def initialize_handlers(self) -> None:
        """Add the API's handlers."""
        self.handlers.extend(HANDLERS)

    @property
    def service(self) -> SandboxService:
        """The log, opened when it is first needed.

        Raises
        ------
        SettingError, LogUnavailableError, LogVersionError
            Told to whoever asks, and tried again by the next request.
        """
        with self._lock:
            if self._service is None:
                from ..log import open_log

                settings = Settings.load()
                self._service = SandboxService(settings, open_log(settings))
            return self._service

    @property
    def states(self) -> StateFiles:
        """The engine's side."""
        if self._states is None:
            self._states = StateFiles(self.service)
        return self._states

    def owner_of(self, user: Any, provider: IdentityProvider) -> str:
        """Return the owner whose sandboxes a user may see."""
        account = self.service.settings.owner or getpass.getuser()
        # These know that somebody has the token, not who: their user names are random.
        anonymous = type(provider) in (
            IdentityProvider,
            PasswordIdentityProvider,
            LegacyIdentityProvider,
        )
        hub_user = os.environ.get("JUPYTERHUB_USER")
        is_host = anonymous or (hub_user is not None and user.username == hub_user)
        if self.owner_from == "server" or (self.owner_from == "auto" and is_host):
            return account
        return str(user.username)

    async def stop_extension(self) -> None:
        """Release the engine and the log."""
        if self._states is not None:
            await self._states.close()
        close = getattr(getattr(self._service, "log", None), "close", None)
        if close is not None:
            with contextlib.suppress(OSError):
                close()
        self._service = self._states = None

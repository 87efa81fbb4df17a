"""The kernel process: connection file, sockets, threads, signals."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from ipykernel.kernelapp import IPKernelApp
from traitlets import default

from .kernel import SHUTDOWN_SECONDS, DaggerKernel


class DaggerKernelApp(IPKernelApp):
    """ipykernel's application without what belongs to a kernel that runs code itself.

    No subshells, no capture of this process's output, no IPython profile, no configuration
    files: settings live in one place (`dagger_kernel.settings`), and nothing is read or imported
    from the notebook's directory, where files of a sandbox may lie.
    """

    name = "dagger-kernel"
    description = "The kernel of a Dagger sandbox."
    subcommands: dict[str, Any] = {}  # noqa: RUF012 - traitlets' convention
    classes = [DaggerKernel]  # noqa: RUF012
    outstream_class = None

    aliases = {**IPKernelApp.aliases.default_args[0], "language": "DaggerKernel.language"}  # noqa: RUF012

    @default("kernel_class")
    def _kernel_class(self) -> type[DaggerKernel]:
        return DaggerKernel

    @default("ipython_dir")
    def _ipython_dir(self) -> str:
        return ""

    @default("profile_dir")
    def _profile_dir(self) -> None:
        return None

    def init_control(self, context: Any) -> None:
        """Make the control channel; drop the thread that subshells would need."""
        super().init_control(context)
        self.shell_channel_thread = None

    def log_connection_info(self) -> None:
        """Note the ports; print nothing: standard output is the caller's."""
        names = ("shell", "iopub", "stdin", "hb", "control")
        self._ports = {name: getattr(self, f"{name}_port") for name in names}
        self.log.info("Another client can connect with: --existing %s", self.connection_file)

    def init_signal(self) -> None:
        """Leave SIGINT at a Python handler until the loop takes over.

        Not ignored: children would inherit that, and a cell's process could not be interrupted.
        """
        signal.signal(signal.SIGINT, lambda *_: None)

    def start(self) -> None:
        """Run until shutdown."""
        loop = asyncio.get_event_loop_policy().get_event_loop()
        kernel: DaggerKernel = self.kernel
        # A stray SIGINT (a terminal's Ctrl-C, a client that knows no interrupt messages) means
        # the cell, never the process.
        loop.add_signal_handler(signal.SIGINT, kernel.interrupt)
        loop.add_signal_handler(signal.SIGTERM, lambda: asyncio.ensure_future(self._terminate()))
        super().start()
        if kernel.shutting_down:
            # The control thread still publishes the last idle; the sockets close behind it.
            self.control_thread.join(SHUTDOWN_SECONDS)

    async def _terminate(self) -> None:
        try:
            await self.kernel.leave(restart=False)
        except Exception:
            self.log.warning("The sandbox was not closed in order", exc_info=True)
        self.io_loop.stop()

    def init_path(self) -> None:
        """Do not import from the notebook's directory."""

    def init_pdb(self) -> None:
        """No debugger here."""

    def init_profile_dir(self) -> None:
        """No profile."""

    def init_config_files(self) -> None:
        """No configuration files."""

    def load_config_file(self, *_args: Any, **_kwargs: Any) -> None:
        """No configuration files."""


def main(argv: list[str] | None = None) -> None:
    """Run a kernel on a connection file (``-f``)."""
    app = DaggerKernelApp.instance()
    app.initialize(sys.argv[1:] if argv is None else argv)
    app.start()

"""The IPython shell of the cell process.

A kernel's shell without a kernel: what it shows leaves as frames, nothing is kept in files, and ``__main__``
is a fresh module.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import types
from typing import Any

from IPython.core import page as pager
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets import CBool, Type, observe

from .display import Outlet, Publisher, ResultHook
from .limits import DEFAULTS, hint, relax
from .loop import prepare
from .mime import clean, cut, cut_traceback, safe_text
from .system import rewrite_pip, run_command
from .tracebacks import has_group, native_lines

MAX_EVALUE = 8192
NO_TRACEBACK = (
    "no traceback to debug: a failed cell's frames end with it. "
    "Write %pdb on in a cell and run the failing cell again; the debugger opens where it fails. "
    "%tb shows the last traceback."
)


class Shell(InteractiveShell):
    """IPython's shell with our ends for output, input, paging and commands."""

    displayhook_class = Type(ResultHook)
    display_pub_class = Type(Publisher)
    readline_use = CBool(False)
    autoindent = CBool(False)

    step_limits: dict[str, float] = DEFAULTS
    limit_reason: str = ""
    last_stb: list[str] | None = None
    last_error: dict[str, Any] | None = None
    earlier_error: Any = staticmethod(lambda: None)
    display_failed: bool = False
    saved_names: Any = staticmethod(list)
    state: Any = None
    kernel: Any = None
    interrupts: Any = types.SimpleNamespace(happened=False)

    @observe("ipython_dir")
    def _ipython_dir_changed(self, change: Any) -> None:
        """Make no directory: IPython's own observer would, where it may not."""

    def init_user_ns(self) -> None:
        """Fill the namespace; the state knows our names by identity, also after ``%reset``."""
        # Each look at a method makes another one.
        self.__dict__.setdefault("get_ipython", self.get_ipython)
        super().init_user_ns()

    def init_environment(self) -> None:
        """Set what command line tools look at, as kernels do."""
        for name, value in (
            ("TERM", "xterm-color"),
            ("CLICOLOR", "1"),
            ("FORCE_COLOR", "1"),
            ("CLICOLOR_FORCE", "1"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
        ):
            os.environ[name] = value

    def init_hooks(self) -> None:
        """Let pagers become payloads."""
        super().init_hooks()
        self.set_hook("show_in_pager", pager.as_hook(self._page), 99)

    def init_virtualenv(self) -> None:
        """Skip IPython's search: the interpreter is the environment's."""

    def init_magics(self) -> None:
        """Add the magics that work differently here."""
        super().init_magics()
        from .magics import RunnerMagics

        self.register_magics(RunnerMagics)

    def _page(
        self, text: Any, start: int = 0, screen_lines: int = 0, pager_cmd: Any = None
    ) -> None:
        data = text if isinstance(text, dict) else {"text/plain": text}
        self.payload_manager.write_payload(
            {"source": "page", "data": clean(data), "start": max(0, start)}
        )

    def set_next_input(self, s: str, replace: bool = False) -> None:
        """Offer text as the next cell (or in place of this one)."""
        self.payload_manager.write_payload(
            {"source": "set_next_input", "text": s, "replace": replace}
        )

    keepkernel_on_exit: Any = None

    def ask_exit(self) -> None:
        """Tell the client that the user wants to leave."""
        self.payload_manager.write_payload(
            {"source": "ask_exit", "keepkernel": bool(self.keepkernel_on_exit)}
        )

    transformed: tuple[str, str] | None = None

    def transform_cell(self, raw_cell: str) -> str:
        """Return a cell as plain Python; the step's own source is transformed only once."""
        known, self.transformed = self.transformed, None
        if known is not None and known[0] == raw_cell:
            return known[1]
        return str(super().transform_cell(raw_cell))

    def should_run_async(self, raw_cell: str, **more: Any) -> bool:
        """Whether a cell runs inside the event loop."""
        return bool(super().should_run_async(raw_cell, **more)) or (
            more.get("preprocessing_exc_tuple") is None and prepare(raw_cell)
        )

    def system(self, cmd: str) -> None:
        """Run a shell command; its output goes where the cell's goes."""
        code = self.user_ns["_exit_code"] = run_command(self.var_expand(cmd, depth=1))
        if self.system_raise_on_error and code != 0:
            raise subprocess.CalledProcessError(code, cmd)

    system_raw = system_piped = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """Run a shell command and return what it printed."""
        return super().getoutput(rewrite_pip(cmd), split=split, depth=depth + 1)

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: there is no screen in the sandbox."""

    def showtraceback(self, *args: Any, **kwargs: Any) -> None:
        """Show an exception; groups and broken exceptions too become one error frame."""
        exc_tuple = args[0] if args else kwargs.get("exc_tuple")
        before = Outlet.errors
        try:
            kind, value, trace = self._get_exc_info(exc_tuple)
        except ValueError:
            self._show_earlier_error()
            return
        if isinstance(value, MemoryError):
            relax()  # showing the error takes memory too
        if isinstance(value, asyncio.CancelledError) and self.interrupts.happened:
            # asyncio hands an interrupt to awaiting code in this form.
            value = KeyboardInterrupt().with_traceback(trace)
            kind = KeyboardInterrupt
            args = ((kind, value, trace), *args[1:])
            kwargs.pop("exc_tuple", None)
        if has_group(value):
            self._showtraceback(kind, value, native_lines(kind, value, trace))
            if self.call_pdb:
                self.debugger(force=True)
            return
        try:
            super().showtraceback(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException:
            if Outlet.errors == before:
                self._showtraceback(kind, value, native_lines(kind, value, trace))

    def _show_earlier_error(self) -> None:
        """Show what `%tb` asks for when this cell has had no error: that of the last failed cell."""
        error = self.earlier_error()
        if error is None:
            print("No traceback available to show.", file=sys.stderr)
        else:
            Outlet.send(error)

    def show_usage_error(self, exc: Any) -> None:
        """Show a magic's complaint as the cell's error, in one line."""
        text = safe_text(exc)
        self._showtraceback(type(exc), exc, [f"\x1b[31mUsageError\x1b[39m: {text}"])

    def debugger(self, force: bool = False) -> None:
        """Debug this cell's error; that of an earlier cell is gone with its process."""
        if force and not hasattr(sys, "last_traceback"):
            raise UsageError(NO_TRACEBACK)
        super().debugger(force)

    def _format_exception_for_storage(self, *_args: Any, **_kwargs: Any) -> dict[str, Any]:
        """Format nothing a second time: the log keeps errors, and an exception's text may raise."""
        return {}

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        reason, words = hint(evalue, self.step_limits)
        text, lines = safe_text(evalue), [str(line) for line in stb]
        if words:
            self.limit_reason = reason
            text = f"{text} ({words})" if text else words
            lines.append(words)
        self.last_stb = lines = cut_traceback(lines)
        if getattr(self.displayhook, "frame", None) is not None:
            # An error while the result is formatted fails the cell, as in ipykernel.
            self.display_failed = True
        self.last_error = {
            "type": "error",
            "ename": str(getattr(etype, "__name__", etype)),
            "evalue": cut(text, MAX_EVALUE),
            "traceback": lines,
        }
        Outlet.send(self.last_error)

    @property
    def user_global_ns(self) -> dict[str, Any]:
        """The globals of user code: the exact dictionary, without touching the lazy ``__main__``."""
        return self.user_ns

    _db: Any = None

    @property
    def db(self) -> Any:
        """Where ``%store`` keeps its values: among the sandbox's own hidden files."""
        if self._db is None:
            from IPython.external.pickleshare import PickleShareDB

            self._db = PickleShareDB(os.path.expanduser("~/.ipython/db"))
        return self._db

    @db.setter
    def db(self, value: Any) -> None:
        self._db = value


# Libraries ask for this name to tell a notebook from a terminal (rich, pandas, tqdm and others).
Shell.__name__ = Shell.__qualname__ = "ZMQInteractiveShell"

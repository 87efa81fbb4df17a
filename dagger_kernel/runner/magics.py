"""Magics that work differently in a sandbox."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from IPython.core import page
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from .system import run_command, uv_pip


@magics_class
class RunnerMagics(Magics):
    """Packages, paging and editing without a terminal."""

    @line_magic
    def pip(self, line: str) -> None:
        """Run the package manager in this environment.

        Usage:
          %pip install [pkgs]
        """
        command = uv_pip(line) if shutil.which("uv") else f"{sys.executable} -m pip {line}"
        self.shell.user_ns["_exit_code"] = run_command(command)

    @line_magic
    def uv(self, line: str) -> None:
        """Run uv, the project and package manager of this environment.

        Usage:
          %uv add [pkgs]
        """
        self.shell.user_ns["_exit_code"] = run_command(f"uv {line}")

    @line_magic
    def sandbox(self, line: str) -> None:
        """Make a lost variable again by running the cells that made it once more.

        Usage:
          %sandbox recompute NAME [NAME ...]
        """
        command, *names = line.split() or [""]
        if command != "recompute" or not names:
            raise UsageError("here, %sandbox is for `%sandbox recompute NAME`.")
        for name in names:
            cells = self.shell.state.recompute(name)
            made = "made again by cell " + ", ".join(f"[{cell}]" for cell in cells)
            print(f"{name}: {made if cells else 'it is not lost'}")

    @line_magic
    def less(self, arg_s: str) -> None:
        """Show a file through the pager; Python files are highlighted."""
        if not arg_s:
            raise UsageError("Missing filename.")
        with open(os.path.expanduser(arg_s), encoding="utf-8", errors="replace") as stream:
            text = stream.read()
        page.page(self.shell.pycolorize(text) if arg_s.endswith(".py") else text)

    more = line_magic("more")(less)

    @line_magic
    def man(self, arg_s: str) -> None:
        """Show a manual page in the pager."""
        page.page(self.shell.getoutput(f"man {arg_s} | col -b", split=False))

    @line_magic
    def clear(self, _line: str) -> None:
        """Clear the output of the cell."""
        from IPython.display import clear_output

        clear_output()

    @line_magic
    def edit(self, _line: str = "", _last_call: Any = None) -> None:
        """Say that there is no editor here."""
        raise UsageError(
            "%edit needs an editor; use %%writefile, or %load to edit a file in a cell."
        )

    ed = line_magic("ed")(edit)

    @line_magic
    def autosave(self, _line: str) -> None:
        """Say that the client saves."""
        print("Autosaving is left to the client.")

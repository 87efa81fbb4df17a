"""What ``dagger-kernel doctor`` looks at, one function a check. Nothing here changes anything."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
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
    from dagger_kernel.log import open_log, schema
    from dagger_kernel.log.database import Database
    from dagger_kernel.log.tables import SCHEMA_VERSION

    from .data import log_exists

    if not log_exists(settings):
        return Check(name="log", state=OK, found="none yet; the first cell makes it")
    database = Database.from_settings(settings)
    try:
        version = schema.version(database)
    finally:
        database.close()
    if version < SCHEMA_VERSION:
        found = f"schema {version or '-'}; the next use brings it to {SCHEMA_VERSION}"
        return Check(name="log", state=OK, found=found)
    store = open_log(settings, create=False)
    try:
        count = len(store.sandboxes(limit=MANY))
    finally:
        store.close()
    more = " or more" if count == MANY else ""
    return Check(name="log", state=OK, found=f"schema {version}, {count} sandboxes{more}")


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

"""The options of ``%%sandbox``: the limits of one cell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...sandbox import SandboxSession
from ...settings import maximum_limits, parse_size
from ...steps import Limits
from .parse import CellCall, UsageError


@dataclass(frozen=True)
class Option:
    """One option and the limit it sets."""

    field: str
    seconds: bool
    help: str


OPTIONS = {
    "--cpu": Option("cpu_seconds", True, "seconds of CPU time"),
    "--wall": Option("wall_seconds", True, "seconds of wall-clock time"),
    "--memory": Option("memory_bytes", False, "memory, such as 4GiB"),
    "--output": Option("output_bytes", False, "text output shown, such as 1MiB"),
    "--file-size": Option("file_bytes", False, "size of one exported file, such as 64MiB"),
    "--files": Option("export_files", False, "number of exported files"),
    "--processes": Option("processes", False, "processes and threads"),
    "--open-files": Option("open_files", False, "open files of one process"),
    "--disk": Option("disk_bytes", False, "bytes the cell may write, such as 8GiB"),
}


def limits_of(call: CellCall, session: SandboxSession) -> Limits:
    """Return the limits for the cell: those of the settings, with the options.

    Raises
    ------
    UsageError
        An option is unknown, has no usable value, or is above the administrator's maximum.
    """
    limits: Limits = session.settings.limits
    maximum = maximum_limits()
    for name, text in _pairs(call.words):
        option = OPTIONS.get(name)
        if option is None:
            known = ", ".join(OPTIONS)
            raise UsageError(f"%%sandbox has no option {name}; it has {known}.")
        value = _value(name, option, text)
        highest = getattr(maximum, option.field)
        if value > highest:
            raise UsageError(
                f"{name} {text} is above the administrator's maximum, {highest}.",
                kept="The cell was not run.",
            )
        limits = replace(limits, **{option.field: value})
    return limits


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    pairs, rest = [], list(words)
    while rest:
        name = rest.pop(0)
        if "=" in name:
            name, _, text = name.partition("=")
        elif rest:
            text = rest.pop(0)
        else:
            raise UsageError(f"%%sandbox {name} needs a value.")
        pairs.append((name, text))
    return pairs


def _value(name: str, option: Option, text: str) -> Any:
    try:
        value = float(text) if option.seconds else parse_size(text)
    except ValueError:
        raise UsageError(f"%%sandbox {name} cannot be {text!r}: {option.help}.") from None
    # Also refuses NaN, which compares false with everything.
    if not 0 < value < float("inf"):
        raise UsageError(f"%%sandbox {name} cannot be {text!r}: it must be above zero.")
    return value

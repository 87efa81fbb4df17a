"""``dagger-kernel doctor``: what is there, what is missing, what to do."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from dagger_kernel.errors import DaggerKernelError, SettingError
from dagger_kernel.settings import Settings

from . import checks, machine, output
from .exits import ExitCode

if TYPE_CHECKING:
    from .checks import Check

ENGINES = ("local", "dagger")
NO_BLOBS: Any = None
SLOW_SECONDS = 0.5
COLORS = {checks.OK: "green", checks.NOTE: "yellow", checks.MISSING: "red"}


def run(*, measure: bool | None, as_json: bool) -> None:
    """Look, report, and exit with `ExitCode.PROBLEM` if no cell can run."""
    found = list(machine.of_machine())
    engines: dict[str, Any] = {}
    usable: list[str] = []
    try:
        settings = Settings.load()
    except SettingError as error:
        found.append(checks.Check(name="settings", state=checks.MISSING, found=error.what))
    else:
        found += checks.of_settings(settings)
        for name in ENGINES:
            engines[name] = asyncio.run(_look_at(name, settings, measure))
        wanted = [name for name in ENGINES if settings.engine in (name, "auto")]
        usable = [name for name in wanted if engines[name]["available"]]
        for name in ENGINES:
            needed = name in wanted and not usable
            found.append(checks.of_engine(name, engines[name], needed=needed))
            if engines[name].get("step_seconds", 0) > SLOW_SECONDS:
                found.append(_slow(name, engines[name]["step_seconds"]))
    ok = bool(usable) and all(one.state != checks.MISSING for one in found)
    if as_json:
        report = {"ok": ok, "checks": [asdict(one) for one in found], "engines": engines}
        output.print_json(_without_secrets(report))
    else:
        _print(found, engines, usable, ok=ok)
    sys.exit(ExitCode.OK if ok else ExitCode.PROBLEM)


def _slow(name: str, seconds: float) -> checks.Check:
    causes = "The machine is busy, or its disk is slow."
    if name == "dagger":
        causes += (
            " Custom CA certificates on the engine's host add about a second to every step: give them to "
            "the sandbox by DAGGER_KERNEL_CA_BUNDLE instead."
        )
    found = f"one step takes {output.human_seconds(seconds)}, which is slow"
    return checks.Check(name=f"{name} engine", state=checks.NOTE, found=found, remedy=causes)


async def _look_at(name: str, settings: Settings, measure: bool | None) -> dict[str, Any]:
    """Return an engine's description, with ``step_seconds`` if it could be measured."""
    from dagger_kernel.engines.select import select_engine

    settings = replace(settings, engine=name)
    # Describing needs no blobs, and a doctor must not make a log where there is none.
    try:
        engine = await select_engine(settings, NO_BLOBS)
    except ImportError as error:
        return {
            "available": False,
            "reasons": [f"It cannot be loaded: {error}."],
            "remedies": ["Install dagger-kernel with all its dependencies again."],
        }
    description: dict[str, Any] = {"available": False}
    try:
        description = await engine.describe()
        wanted = description.get("base_built") if measure is None else measure
        if description["available"] and wanted:
            await engine.close()
            description["step_seconds"] = await _measure(settings)
    except DaggerKernelError as error:
        description |= {"available": False, "reasons": [error.what], "remedies": [error.remedy]}
    finally:
        await engine.close()
    return description


async def _measure(settings: Settings) -> float:
    from dagger_kernel.engines.select import select_engine

    from .data import opened_log
    from .measure import step_seconds

    with opened_log(settings, create=True) as store:
        engine = await select_engine(settings, store.blobs)
        try:
            return await step_seconds(engine, settings)
        finally:
            await engine.close()


def _print(found: list[Check], engines: dict[str, Any], usable: list[str], *, ok: bool) -> None:
    from rich.markup import escape

    console = output.console()
    width = max(len(one.name) for one in found)
    for one in found:
        text = escape(_redact(output.clean(one.found)))
        mark = f"[{COLORS[one.state]}]{one.state:<7}[/]"
        console.print(f"{mark}  [bold]{one.name:<{width}}[/]  {text}")
        if one.remedy:
            console.print(f"{'':9}{'':{width}}  -> {escape(_redact(one.remedy))}")
    for name in usable:
        seconds = engines[name].get("step_seconds")
        if seconds is not None:
            console.print(f"One step on the {name} engine: {output.human_seconds(seconds)}")
    if ok:
        console.print(f"Cells can run here, on the {' or '.join(usable)} engine.")
    else:
        console.print("[bold]No cell can run here[/] until what is missing is there.")


def _redact(text: str) -> str:
    """Hide user names and passwords in addresses."""
    return re.sub(r"(?<=://)[^/@\s]+@", "***@", text)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return _redact(value)
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return value

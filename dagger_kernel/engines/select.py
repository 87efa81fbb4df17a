"""Choose the engine: ``auto`` takes Dagger when a runner host is configured and answers, else local."""

from __future__ import annotations

from ..errors import EngineUnavailableError, SettingError
from ..settings import Settings
from .base import BlobSource, Engine


async def select_engine(settings: Settings, blobs: BlobSource) -> Engine:
    """Return the engine of the settings; nothing is built or started yet.

    Raises
    ------
    SettingError
        The engine is not among the allowed ones.
    EngineUnavailableError
        Neither engine can be used (``auto``): the message names both reasons and remedies.
    """
    allowed = settings.allowed_engines.split()
    if settings.engine != "auto" and settings.engine not in allowed:
        raise SettingError(
            "engine", settings.engine, f"one of the allowed ones: {', '.join(allowed)}"
        )
    if settings.engine == "local":
        return _local(settings, blobs)
    if settings.engine == "dagger":
        return _dagger(settings, blobs)
    reasons, remedies = [], []
    engines = [_local(settings, blobs)] if "local" in allowed else []
    if settings.runner_host and "dagger" in allowed:
        engines.insert(0, _dagger(settings, blobs))
    else:
        reasons.append("No Dagger engine is configured.")
        remedies.append("Set DAGGER_KERNEL_RUNNER_HOST.")
    for engine in engines:
        report = await engine.describe()
        if report["available"]:
            return engine
        reasons += report["reasons"]
        remedies += report["remedies"]
        await engine.close()
    raise EngineUnavailableError(
        "No engine can run cells here. " + " ".join(reasons),
        remedy=" ".join(dict.fromkeys(remedies)),
    )


def _local(settings: Settings, blobs: BlobSource) -> Engine:
    from .local import LocalEngine

    return LocalEngine(settings, blobs)


def _dagger(settings: Settings, blobs: BlobSource) -> Engine:
    from .dagger import DaggerEngine

    return DaggerEngine(settings, blobs)

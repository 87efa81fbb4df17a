"""All providers, in the order in which they are restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import interpreter, libraries, logs, patches, plotting, process, randomness, shell
from .watched import ActiveMocks, Watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..patched import Patched
    from .base import Provider


def all_providers(
    modules: Callable[[], set[str]],
    load_modules: Callable[[], None],
    assigned: Callable[[], list[tuple[Any, str]]],
    patched: Patched,
) -> list[Provider]:
    """Make the providers of one session.

    Parameters
    ----------
    modules : callable
        Gives the names of the user's own modules.
    load_modules : callable
        Loads all of these which are saved.
    assigned : callable
        Gives the objects and attribute names which the cell assigned.
    patched : Patched
        The places of libraries which hold something of the user's.
    """
    watched = Watched(assigned, modules, patched)
    return [
        patches.Builtins(patched),
        process.Directory(),
        process.Environment(),
        process.SearchPath(),
        interpreter.Interpreter(),
        randomness.PythonRandom(),
        randomness.NumpyRandom(),
        randomness.TorchRandom(),
        interpreter.Warnings(),
        interpreter.Locale(),
        interpreter.Decimals(),
        libraries.NumpyOptions(),
        libraries.PandasOptions(),
        plotting.MatplotlibOptions(),
        plotting.Figures(),
        libraries.SklearnOptions(),
        plotting.PlotlyOptions(),
        libraries.TorchOptions(),
        logs.Logging(),
        # Extensions first: the callbacks among the objects may be theirs.
        shell.ShellOptions(modules, load_modules),
        shell.ShellObjects(),
        watched,
        patches.Patches(watched, patched),
        ActiveMocks(),
    ]

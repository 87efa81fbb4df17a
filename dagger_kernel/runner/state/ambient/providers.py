"""All providers, in the order in which they are restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import libraries, logs, patches, process, randomness, shell

if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import Provider


def all_providers(
    modules: Callable[[], set[str]],
    load_modules: Callable[[], None],
    assigned: Callable[[], list[tuple[Any, str]]],
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
    """
    return [
        patches.Builtins(),
        process.Directory(),
        process.Environment(),
        process.SearchPath(),
        process.Interpreter(),
        randomness.PythonRandom(),
        randomness.NumpyRandom(),
        randomness.TorchRandom(),
        libraries.Warnings(),
        libraries.Locale(),
        libraries.Decimals(),
        libraries.NumpyOptions(),
        libraries.PandasOptions(),
        libraries.MatplotlibOptions(),
        libraries.Figures(),
        libraries.SklearnOptions(),
        libraries.PlotlyOptions(),
        libraries.TorchOptions(),
        logs.Logging(),
        # Extensions first: the callbacks among the objects may be theirs.
        shell.ShellOptions(modules, load_modules),
        shell.ShellObjects(),
        patches.Patches(assigned, lambda name: name in modules()),
    ]

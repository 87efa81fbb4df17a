"""All providers, in the order in which they are restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import libraries, logs, process, randomness, shell

if TYPE_CHECKING:
    from .base import Provider


def all_providers() -> list[Provider]:
    """Make the providers of one session."""
    return [
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
        shell.ShellOptions(),
        shell.ShellObjects(),
    ]

"""Defaults of the plotting libraries, and the figures which pyplot holds open."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from .base import Provider


class MatplotlibOptions(Provider):
    """``rcParams``."""

    name = "matplotlib.rc"
    module = "matplotlib"
    plain = False

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _now() -> dict[str, Any]:
        # Not through `rcParams[...]`: looking the backend up would choose one.
        return {
            k: v for k, v in dict.items(sys.modules["matplotlib"].rcParams) if isinstance(k, str)
        }

    def capture(self) -> Any:
        changed = {k: v for k, v in self._now().items() if self._base.get(k) != v}
        backend = changed.get("backend")
        if backend is not None and not isinstance(backend, str):
            del changed["backend"]
        return changed or None

    def restore(self, value: Any) -> None:
        matplotlib = sys.modules["matplotlib"]
        backend = value.get("backend")
        dict.update(matplotlib.rcParams, {k: v for k, v in value.items() if k != "backend"})
        if backend is not None:
            try:
                matplotlib.use(backend)
            except Exception:
                pass


class Figures(Provider):
    """Figures which pyplot holds open, and which of them is current."""

    name = "matplotlib.figures"
    module = "matplotlib.pyplot"
    plain = False

    def capture(self) -> Any:
        managers = sys.modules["matplotlib._pylab_helpers"].Gcf.figs
        if not managers:
            return None
        return [(number, manager.canvas.figure) for number, manager in managers.items()]

    def restore(self, value: Any) -> None:
        pyplot = sys.modules["matplotlib.pyplot"]
        helpers = sys.modules["matplotlib._pylab_helpers"].Gcf
        for number, figure in value:
            # A figure which was open registers itself while it is loaded, under a new number.
            for other, manager in list(helpers.figs.items()):
                if manager.canvas.figure is figure:
                    del helpers.figs[other]
                    manager.num = number
                    helpers.figs[number] = manager
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        figure.number = number
                    break
            else:
                manager = None
            if manager is not None:
                continue
            manager = pyplot._get_backend_mod().new_figure_manager_given_figure(number, figure)
            helpers._set_new_active_manager(manager)


class PlotlyOptions(Provider):
    """Plotly's default renderer and template."""

    name = "plotly.defaults"
    module = "plotly.io"

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _now() -> list[Any]:
        io = sys.modules["plotly.io"]
        return [str(io.renderers.default), io.templates.default]

    def capture(self) -> Any:
        now = self._now()
        return now if now != self._base else None

    def restore(self, value: Any) -> None:
        io = sys.modules["plotly.io"]
        if value[0] != self._base[0]:
            io.renderers.default = value[0]
        if value[1] != self._base[1]:
            io.templates.default = value[1]

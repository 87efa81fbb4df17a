"""Options of libraries, and the interpreter's own: what is not the default is kept."""

from __future__ import annotations

import decimal
import locale
import sys
import warnings
from typing import Any

from .base import Provider


class Warnings(Provider):
    """Warning filters."""

    name = "warnings"
    plain = False

    def start(self) -> None:
        self._base = list(warnings.filters)
        self._waiting: list[Any] = []

    def capture(self) -> Any:
        now = list(warnings.filters)
        if now == self._base and not self._waiting:
            return None
        return [self._named(entry) for entry in now] + self._waiting

    @staticmethod
    def _named(entry: Any) -> Any:
        """Name a library's category: looking at a filter must not import the library."""
        action, message, category, module, line = entry
        place = (category.__module__, category.__qualname__)
        found = getattr(sys.modules.get(place[0]), place[1], None)
        named = place if found is category and place[0] != "__main__" else category
        return (action, message, named, module, line)

    def restore(self, value: Any) -> None:
        restored = []
        for entry in value:
            action, message, category, module, line = entry
            if isinstance(category, tuple):
                category = getattr(sys.modules.get(category[0]), category[1], None)
                if category is None:
                    # Its library is not loaded; importing it sets its filters anew.
                    self._waiting.append(entry)
                    continue
            restored.append((action, message, category, module, line))
        warnings.filters[:] = restored  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]


class Locale(Provider):
    """The process's locale."""

    name = "locale"

    def start(self) -> None:
        self._base = locale.setlocale(locale.LC_ALL)

    def capture(self) -> Any:
        now = locale.setlocale(locale.LC_ALL)
        return now if now != self._base else None

    def restore(self, value: Any) -> None:
        try:
            locale.setlocale(locale.LC_ALL, value)
        except locale.Error:
            pass


class Decimals(Provider):
    """The decimal context."""

    name = "decimal"
    plain = False

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _now() -> str:
        return repr(decimal.getcontext())

    def capture(self) -> Any:
        return decimal.getcontext() if self._now() != self._base else None

    def restore(self, value: Any) -> None:
        decimal.setcontext(value)


class NumpyOptions(Provider):
    """Print and error options of NumPy."""

    name = "numpy.options"
    module = "numpy"
    plain = False

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _now() -> tuple[dict[str, Any], dict[str, Any]]:
        numpy = sys.modules["numpy"]
        return (dict(numpy.get_printoptions()), dict(numpy.geterr()))

    def capture(self) -> Any:
        now = self._now()
        changed = {k: v for k, v in now[0].items() if self._base[0].get(k) != v}
        errors = now[1] if now[1] != self._base[1] else {}
        return (changed, errors) if changed or errors else None

    def restore(self, value: Any) -> None:
        numpy = sys.modules["numpy"]
        changed, errors = value
        changed = {k: v for k, v in changed.items() if k != "override_repr" or v is not None}
        if changed:
            numpy.set_printoptions(**changed)
        if errors:
            numpy.seterr(**errors)


class PandasOptions(Provider):
    """Options of pandas."""

    name = "pandas.options"
    module = "pandas"
    plain = False

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _now() -> dict[str, Any]:
        config = sys.modules["pandas"]._config.config
        found: dict[str, Any] = {}

        def walk(tree: dict[str, Any], prefix: str) -> None:
            for name, value in tree.items():
                if isinstance(value, dict):
                    walk(value, f"{prefix}{name}.")
                else:
                    found[prefix + name] = value

        walk(config._global_config, "")
        return found

    def capture(self) -> Any:
        now = self._now()
        changed = {
            k: v
            for k, v in now.items()
            if k not in self._base or (self._base[k] is not v and self._base[k] != v)
        }
        return changed or None

    def restore(self, value: Any) -> None:
        pandas = sys.modules["pandas"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, setting in value.items():
                try:
                    pandas.set_option(name, setting)
                except Exception:
                    continue


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


class SklearnOptions(Provider):
    """scikit-learn's global configuration."""

    name = "sklearn.config"
    module = "sklearn"

    def start(self) -> None:
        self._base = sys.modules["sklearn"].get_config()

    def capture(self) -> Any:
        now = sys.modules["sklearn"].get_config()
        return {k: v for k, v in now.items() if self._base.get(k) != v} or None

    def restore(self, value: Any) -> None:
        sys.modules["sklearn"].set_config(**value)


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


class TorchOptions(Provider):
    """Torch's default type and gradient switch."""

    name = "torch.options"
    module = "torch"

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _now() -> list[Any]:
        torch = sys.modules["torch"]
        return [str(torch.get_default_dtype()).partition(".")[2], bool(torch.is_grad_enabled())]

    def capture(self) -> Any:
        now = self._now()
        return now if now != self._base else None

    def restore(self, value: Any) -> None:
        torch = sys.modules["torch"]
        torch.set_default_dtype(getattr(torch, value[0]))
        torch.set_grad_enabled(value[1])

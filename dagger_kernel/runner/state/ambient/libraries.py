"""Options of numerical libraries: what is not the default is kept."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from .base import Provider


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

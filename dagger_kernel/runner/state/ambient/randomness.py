"""Random streams go on where they stopped; unseeded ones replay equal."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

from .base import Provider


def _number(seed: bytes, label: str) -> int:
    return int.from_bytes(hashlib.sha256(label.encode() + b"\0" + seed).digest()[:16], "big")


class PythonRandom(Provider):
    """The module functions of ``random``."""

    name = "random"
    module = "random"
    plain = False

    def seed(self, seed: bytes) -> None:
        random = sys.modules["random"]
        random.seed(_number(seed, "random"))
        self._base = random.getstate()

    def capture(self) -> Any:
        state = sys.modules["random"].getstate()
        return None if state == self._base else state

    def restore(self, value: Any) -> None:
        sys.modules["random"].setstate(value)
        self._base = None


class NumpyRandom(Provider):
    """NumPy's global generator."""

    name = "numpy.random"
    module = "numpy.random"
    plain = False

    def seed(self, seed: bytes) -> None:
        random = sys.modules["numpy.random"]
        number = _number(seed, "numpy")
        random.seed([number >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)])
        self._base: Any = self._plain(random.get_state())

    @staticmethod
    def _plain(state: Any) -> Any:
        kind, keys, *rest = state
        return (str(kind), keys.tobytes(), *rest)

    def capture(self) -> Any:
        state = self._plain(sys.modules["numpy.random"].get_state())
        return None if state == self._base else state

    def restore(self, value: Any) -> None:
        import numpy as np

        kind, keys, *rest = value
        state = (kind, np.frombuffer(keys, dtype=np.uint32), *rest)
        sys.modules["numpy.random"].set_state(state)
        self._base = None


class TorchRandom(Provider):
    """Torch's CPU generator."""

    name = "torch.random"
    module = "torch"
    plain = False

    def seed(self, seed: bytes) -> None:
        torch = sys.modules["torch"]
        torch.manual_seed(_number(seed, "torch") & (1 << 62) - 1)
        self._base: Any = self._now()

    @staticmethod
    def _now() -> bytes:
        return bytes(sys.modules["torch"].get_rng_state().numpy().tobytes())

    def capture(self) -> Any:
        state = self._now()
        return None if state == self._base else state

    def restore(self, value: Any) -> None:
        import numpy as np

        torch = sys.modules["torch"]
        torch.set_rng_state(torch.from_numpy(np.frombuffer(value, dtype=np.uint8).copy()))
        self._base = None

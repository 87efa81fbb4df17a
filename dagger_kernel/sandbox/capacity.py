"""How many steps may run and wait: as the config files say now, so that it can be changed while kernels run."""

from __future__ import annotations

import os

from ..errors import SettingError
from ..settings import Settings, config_paths

Stamp = tuple[int, int] | None


class Capacity:
    """Gives ``(max_running, max_queued)``: those of the session, until a config file changes.

    Asking costs looking at two files' times.
    """

    def __init__(self, settings: Settings) -> None:
        self._now = (settings.max_running, settings.max_queued)
        self._stamps = _stamps()

    def __call__(self) -> tuple[int, int]:
        """Return the limits in force."""
        stamps = _stamps()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                settings = Settings.load()
            except SettingError:
                return self._now  # half written: the next change is looked at again
            self._now = (settings.max_running, settings.max_queued)
        return self._now


def _stamps() -> list[Stamp]:
    return [_stamp(os.fspath(path)) for path in config_paths()]


def _stamp(path: str) -> Stamp:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size

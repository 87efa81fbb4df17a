"""Logging: levels, handlers and filters of all loggers."""

from __future__ import annotations

import functools
import importlib.util
import logging
import sys
from typing import Any

from .base import Provider
from .hooks import on_import


class Logging(Provider):
    """What ``logging`` was told."""

    name = "logging"
    module = "logging"
    plain = False

    def start(self) -> None:
        self._base = self._now()
        self._waiting: dict[str, Any] = {}

    @staticmethod
    def _loggers() -> dict[str, Any]:
        manager = logging.Logger.manager
        known = list(manager.loggerDict.items())
        named = {name: logger for name, logger in known if isinstance(logger, logging.Logger)}
        return {"": logging.root, **named}

    def _now(self) -> dict[str, Any]:
        found: dict[str, Any] = {"\0disable": logging.Logger.manager.disable}
        for name, logger in self._loggers().items():
            found[name] = (
                logger.level,
                logger.disabled,
                logger.propagate,
                list(logger.handlers),
                list(logger.filters),
            )
        names = {level: label for level, label in logging._levelToName.items() if level % 10}
        if names:
            found["\0levels"] = names
        return found

    def capture(self) -> Any:
        now = self._now()
        plain: tuple[Any, ...] = (0, False, True, [], [])
        return {k: v for k, v in now.items() if self._base.get(k, plain) != v} or None

    def restore(self, value: Any) -> None:
        for name, state in value.items():
            if name == "\0disable":
                logging.disable(state)
            elif name == "\0levels":
                for level, label in state.items():
                    logging.addLevelName(level, label)
            else:
                library = name.partition(".")[0]
                if library and library not in sys.modules and _is_library(library):
                    # It sets its loggers up when it is imported; what was changed comes after.
                    self._waiting[name] = state
                    on_import(library, functools.partial(self._apply_later, name))
                else:
                    self._apply(name, state)

    def _apply_later(self, name: str) -> None:
        self._apply(name, self._waiting.pop(name))

    @staticmethod
    def _apply(name: str, state: Any) -> None:
        logger = logging.getLogger(name) if name else logging.root
        level, disabled, propagate, handlers, filters = state
        logger.setLevel(level)
        logger.disabled, logger.propagate = disabled, propagate
        logger.handlers[:] = handlers
        logger.filters[:] = filters


def _is_library(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False

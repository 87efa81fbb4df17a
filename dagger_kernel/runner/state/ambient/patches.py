"""What the user put into libraries: attributes of builtins, modules and classes."""

from __future__ import annotations

import builtins
import importlib
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from .base import Provider
from .hooks import on_import

if TYPE_CHECKING:
    from collections.abc import Callable

_SHELL_NAMES = frozenset({"display", "get_ipython", "exit", "quit", "_", "__IPYTHON__"})
_NEVER = frozenset(
    {"sys.stdout", "sys.stderr", "sys.stdin", "sys.path", "sys.argv", "sys.modules", "os.environ",
     "sys.last_value", "sys.last_type", "sys.last_traceback", "sys.last_exc"}
)  # fmt: skip


class Builtins(Provider):
    """Names added to or replaced in ``builtins``."""

    name = "builtins"
    module = "builtins"
    plain = False

    def start(self) -> None:
        self._base = dict(vars(builtins))

    def capture(self) -> Any:
        now = {k: v for k, v in vars(builtins).items() if k not in _SHELL_NAMES}
        missing = object()
        return {k: v for k, v in now.items() if self._base.get(k, missing) is not v} or None

    def restore(self, value: Any) -> None:
        for name, content in value.items():
            setattr(builtins, name, content)


class Patches(Provider):
    """Attributes which a cell assigned in modules and classes of libraries.

    Parameters
    ----------
    assigned : callable
        Gives (object, attribute name) for the assignments of this cell.
    users : callable
        Tells whether a module name is the user's own, which is saved as a whole.
    """

    name = "patches"
    plain = False

    def __init__(
        self, assigned: Callable[[], list[tuple[Any, str]]], users: Callable[[str], bool]
    ) -> None:
        self._assigned = assigned
        self._users = users
        self._kept: dict[tuple[str, str, str], Any] = {}

    def capture(self) -> Any:
        for owner, attribute in self._assigned():
            place = self._place(owner)
            if place is None or f"{place[0]}.{attribute}" in _NEVER:
                continue
            content = vars(owner)
            if attribute in content:
                self._kept[(*place, attribute)] = content[attribute]
        for module, path, name in list(self._kept):
            owner = _find(module, path)
            if owner is not None and name in vars(owner):
                self._kept[module, path, name] = vars(owner)[name]
        return dict(self._kept) or None

    def _place(self, owner: Any) -> tuple[str, str] | None:
        if isinstance(owner, type):
            module, path = owner.__module__, owner.__qualname__
        else:
            module, path = getattr(owner, "__name__", ""), ""
        if module in ("__main__", "builtins") or self._users(module):
            return None
        return (module, path) if _find(module, path) is owner else None

    def restore(self, value: Any) -> None:
        self._kept = dict(value)
        for module, path, attribute in self._kept:
            on_import(module, partial(self._apply, (module, path, attribute)))

    def _apply(self, place: tuple[str, str, str]) -> None:
        owner = _find(place[0], place[1])
        if owner is not None:
            try:
                setattr(owner, place[2], self._kept[place])
            except (AttributeError, TypeError):
                pass


def _find(module: str, path: str) -> Any:
    if module not in sys.modules:
        return None
    found: Any = importlib.import_module(module)
    for part in path.split(".") if path else ():
        found = getattr(found, part, None)
    return found

"""What the user put into libraries: attributes of builtins, modules and classes."""

from __future__ import annotations

import builtins
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from ..lost import LostObject
from ..patched import UNKNOWN
from .base import Provider
from .hooks import on_import
from .places import dotted, find_owner

if TYPE_CHECKING:
    from ..patched import Patched
    from .watched import Watched

_SHELL_NAMES = frozenset({"display", "get_ipython", "exit", "quit", "_", "__IPYTHON__"})


class Builtins(Provider):
    """Names added to or replaced in ``builtins``."""

    name = "builtins"
    module = "builtins"
    plain = False

    def __init__(self, patched: Patched) -> None:
        self._patched = patched

    def start(self) -> None:
        self._base = dict(vars(builtins))

    def capture(self) -> Any:
        now = {k: v for k, v in vars(builtins).items() if k not in _SHELL_NAMES}
        missing = object()
        changed = {k: v for k, v in now.items() if self._base.get(k, missing) is not v}
        for name in changed:
            self._patched.add("builtins", name, self._base.get(name, UNKNOWN))
        return changed or None

    def restore(self, value: Any) -> None:
        for name, content in value.items():
            self._patched.add("builtins", name, self._base.get(name, UNKNOWN))
            if type(content) is not LostObject:
                setattr(builtins, name, content)


class Patches(Provider):
    """Attributes which the user's code assigned in modules and classes of libraries.

    Parameters
    ----------
    watched : Watched
        Knows where to look.
    patched : Patched
        Told which places are patched, and what was there before.
    """

    name = "patches"
    plain = False

    def __init__(self, watched: Watched, patched: Patched) -> None:
        self._watched = watched
        self._patched = patched
        self._kept: dict[tuple[str, str, str], Any] = {}

    def capture(self) -> Any:
        for place in self._watched.places | self._kept.keys():
            owner = find_owner(*place[:2])
            if owner is not None:
                self._look(owner, place)
        return dict(sorted(self._kept.items())) or None

    def _look(self, owner: Any, place: tuple[str, str, str]) -> None:
        """Keep what a patched place holds, unless it is as the library made it."""
        where, content = (place[0], dotted(*place[1:])), vars(owner)
        if place[2] in content:
            self._patched.add(*where)
        if place[2] in content and not self._patched.holds(content[place[2]], *where):
            self._kept[place] = content[place[2]]
        else:
            self._kept.pop(place, None)
            self._patched.discard(*where)

    def restore(self, value: Any) -> None:
        self._kept = dict(value)
        for module, path, attribute in self._kept:
            on_import(module, partial(self._apply, (module, path, attribute)))

    def _apply(self, place: tuple[str, str, str]) -> None:
        owner, content = find_owner(place[0], place[1]), self._kept[place]
        if owner is not None and type(content) is not LostObject:
            where = (place[0], dotted(*place[1:]))
            self._patched.add(*where, vars(owner).get(place[2], UNKNOWN))
            with contextlib.suppress(AttributeError, TypeError):
                setattr(owner, place[2], content)
            names: Any = getattr(owner, "_accessors", None)
            if hasattr(content, "_accessor") and isinstance(names, set):
                names.add(place[2])  # as pandas does

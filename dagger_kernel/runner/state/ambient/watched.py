"""Which attributes of libraries the user's code may have replaced: what is looked at after a cell.

Looking at every module after every cell would cost more than most cells do. The places come from
source, once: of a cell, and of a module of the user's when it is imported. They are remembered, as
a function may be called in a later cell. Some libraries put objects into classes or modules for the
user, and know themselves which.
"""

from __future__ import annotations

import sys
import types
from functools import partial
from typing import TYPE_CHECKING, Any

from ..patched import UNKNOWN
from ..static import needs_of_source
from .base import Provider
from .hooks import on_import
from .places import assigned_attributes, dotted, find_owner, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..patched import Patched

_NEVER = frozenset(
    {"sys.stdout", "sys.stderr", "sys.stdin", "sys.path", "sys.argv", "sys.modules", "os.environ",
     "sys.last_value", "sys.last_type", "sys.last_traceback", "sys.last_exc"}
)  # fmt: skip

_Place = tuple[str, str, str]
"""Module, path in it ("" is the module itself) and attribute."""

_LARGEST = 1 << 20
"""Source of the user's modules beyond this many bytes is not looked at."""


class Watched(Provider):
    """Places of libraries which code of the user's assigns to.

    Parameters
    ----------
    assigned : callable
        Gives (object, attribute name) for the assignments in the cell's source.
    users : callable
        Gives the names of the user's own modules, which are saved as a whole.
    patched : Patched
        Told what the library itself has there.
    """

    name = "watched"

    def __init__(
        self,
        assigned: Callable[[], list[tuple[Any, str]]],
        users: Callable[[], set[str]],
        patched: Patched,
    ) -> None:
        self._assigned = assigned
        self._users = users
        self._patched = patched
        self._seen: set[str] = set()
        self.places: set[_Place] = set()

    def restore(self, value: Any) -> None:
        self.places = {(module, path, name) for module, path, name in value}
        for place in self.places:
            on_import(place[0], partial(self._remember, place))

    def expect(self) -> None:
        self._seen = set(self._users())
        for owner, attribute in self._assigned():
            self._add(owner, attribute)
        for place in self.places:
            self._remember(place)

    def capture(self) -> Any:
        for owner, attribute in self._assigned():
            self._add(owner, attribute)
        later: set[_Place] = set()
        for owner, attribute in self._in_modules():
            # What the library had there is not known, unless it still has it.
            if self._is_users(vars(owner).get(attribute)):
                self._add(owner, attribute)
            elif (place := self._place(owner, attribute)) is not None:
                later.add(place)
        for owner, attribute in _accessors():
            if self._is_users(vars(owner).get(attribute)):
                self._add(owner, attribute)
        for owner, attribute, original in _mocked():
            if (place := self._add(owner, attribute)) is not None:
                self._patched.add(place[0], dotted(*place[1:]), original)
        return sorted(map(list, self.places | later)) or None

    def _place(self, owner: Any, attribute: str) -> _Place | None:
        place = place_of(owner)
        if place is None or place[0] in self._users() or f"{place[0]}.{attribute}" in _NEVER:
            return None
        return (*place, attribute)

    def _add(self, owner: Any, attribute: str) -> _Place | None:
        place = self._place(owner, attribute)
        if place is not None:
            self.places.add(place)
        return place

    def _remember(self, place: _Place) -> None:
        owner = find_owner(*place[:2])
        if owner is not None and place[2] in vars(owner):
            self._patched.add(place[0], dotted(*place[1:]), vars(owner)[place[2]])

    def _in_modules(self) -> Iterator[tuple[Any, str]]:
        """What the source of the user's new modules assigns to."""
        for name in self._users() - self._seen:
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None)
            if module is not None and isinstance(file, str) and file.endswith(".py"):
                try:
                    with open(file, encoding="utf-8") as stream:
                        needs = needs_of_source(stream.read(_LARGEST))
                except (OSError, UnicodeError):
                    continue
                yield from assigned_attributes(needs, vars(module))

    def _is_users(self, value: Any) -> bool:
        """Whether the user's code made an object."""
        value = getattr(value, "_accessor", value)
        if isinstance(value, types.FunctionType):
            home: Any = value.__globals__.get("__name__")
        else:
            home = (value if isinstance(value, type) else type(value)).__module__
        return home in ("__main__", "unittest.mock") or home in self._users()


def _accessors() -> Iterator[tuple[Any, str]]:
    """Attributes of pandas' classes which give an accessor."""
    pandas = sys.modules.get("pandas")
    for kind in ("DataFrame", "Series", "Index"):
        owner = getattr(pandas, kind, None)
        for name in sorted(getattr(owner, "_accessors", ())):
            yield owner, name


def _mocked() -> Iterator[tuple[Any, str, Any]]:
    """What started patches of ``unittest.mock`` replace, and what was there."""
    mock = sys.modules.get("unittest.mock")
    for active in mock._patch._active_patches if mock is not None else ():
        for patch in (active, *getattr(active, "additional_patchers", ())):
            owner = getattr(patch, "target", None)
            if isinstance(owner, type | types.ModuleType):
                yield owner, patch.attribute, patch.temp_original if patch.is_local else UNKNOWN


class ActiveMocks(Provider):
    """The started patches of ``unittest.mock``, which ``stop`` and ``stopall`` look for."""

    name = "mocks"
    module = "unittest.mock"
    plain = False

    def capture(self) -> Any:
        return list(sys.modules["unittest.mock"]._patch._active_patches) or None

    def restore(self, value: Any) -> None:
        sys.modules["unittest.mock"]._patch._active_patches[:] = value

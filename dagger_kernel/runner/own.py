"""The runner's own Python: what user code replaces in the standard library, it replaces for itself.

Much of the runner works in the process of user code, while that runs and after it: ``json.dumps`` replaced by
something that fails must not cost the cell its variables. So the runner's modules get the builtins among their
globals, and copies of the library modules they use, made before user code runs. What those call in their turn
finds the replacements: those with which nothing works are put back when the cell's code has ended.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

from .descriptors import open_high

COPIED = (
    "ast", "base64", "collections", "contextlib", "copyreg", "ctypes", "dataclasses", "errno", "fcntl",
    "functools", "gc", "hashlib", "io", "itertools", "json", "mmap", "operator", "os", "pickle", "posixpath",
    "re", "resource", "select", "socket", "stat", "struct", "subprocess", "tempfile", "threading", "time", "traceback",
)  # fmt: skip
"""Library modules of which the runner has copies. Not those whose state it sets or saves, such as ``signal``."""

_before: dict[types.ModuleType, dict[str, Any]] = {builtins: {}}
_copies: dict[str, types.ModuleType] = {}
_done: set[str] = set()


class _Copy(types.ModuleType):
    """A module's attributes as they were before user code; what the runner assigns, all shall see."""

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(sys.modules[self.__name__], name, value)


def keep() -> None:
    """Keep the standard library as it is now for the runner's modules loaded so far.

    Called before rooms are forked, so that it costs them little, and in each before its step.
    """
    plain = {name: value for name, value in vars(builtins).items() if not name.startswith("_")}
    own = f"{__package__}."
    for name in [name for name in sys.modules if name.startswith(own) and name not in _done]:
        _done.add(name)
        names = vars(sys.modules[name])
        for alias, value in list(names.items()):
            if type(value) is types.ModuleType and value.__name__ in COPIED:
                names[alias] = _copy(value)
        for builtin, value in plain.items():
            names.setdefault(builtin, value)
    _before.update({module: dict(vars(module)) for module in _before})


def _copy(module: types.ModuleType) -> types.ModuleType:
    name = module.__name__
    if name not in _copies:
        copy = _copies[name] = _Copy(name)
        _before[module] = {}
        vars(copy).update(vars(module))
        if name == "os":
            vars(copy).update(path=_copy(os.path), open=open_high)
    return _copies[name]


def mend(*, sure: bool = False) -> list[str]:
    """Put back what user code replaced, if Python's libraries do not work with it: one by one until they do.

    Parameters
    ----------
    sure
        Whether it is known that something does not work; then all is put back.

    Returns
    -------
    list of str
        Names of what was put back.
    """
    replaced = list(_replaced())
    if not replaced or (not sure and _works()):
        return []
    names = []
    for module, name, value in replaced:
        setattr(module, name, value)
        names.append(f"{module.__name__}.{name}")
        if not sure and _works():
            break
    return names


def _replaced() -> Iterator[tuple[types.ModuleType, str, Any]]:
    """Yield module, name and former value of what is another object now."""
    for module, before in _before.items():
        now = vars(module)
        for name, value in before.items():
            if now.get(name, _before) is not value and (module is builtins or name[0] != "_"):
                yield module, name, value


def _works() -> bool:
    """Try what saving the variables rests on."""
    before, now = _before[builtins], vars(builtins)
    if any(isinstance(before[name], type) > isinstance(now.get(name), type) for name in before):
        return False  # libraries ask `isinstance` for it
    try:
        with contextlib.suppress(KeyError):
            json.loads(json.dumps({"b": [1, 2.5, None], "a": {}}, sort_keys=True))
            sum(isinstance(node, ast.Name) for node in ast.walk(ast.parse("a = b")))
            os.path.realpath(os.path.join("a", os.path.basename("/b")))
            os.makedirs(os.path.dirname(os.devnull), exist_ok=True)
    except BaseException:
        return False
    return True

"""Lazy names: a variable is loaded when code first looks it up.

Globals stay the exact dictionary of ``__main__``; a dictionary subclass there
would be bypassed by class bodies and function stores. Instead the *builtins*
which the namespace names are a subclass with ``__missing__``: the interpreter
looks there whenever a global is absent, in functions, classes and threads alike.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_QUIET_READERS = frozenset({"dataclasses", "typing", "annotationlib", "abc", "enum", "functools"})
"""Modules which read ``__main__.__dict__`` routinely and look single names up in it."""

_OWN = __name__.rpartition(".")[0]
"""The state layer itself, which looks at ``__main__`` as at any other object."""

_MISSING = object()
_MODULE_DICT: Any = vars(types.ModuleType)["__dict__"]


class LazyBuiltins(dict[str, Any]):
    """Builtins which fetch saved variables on first use.

    Parameters
    ----------
    namespace : dict
        The globals whose absent names are fetched.
    fetch : callable
        Called with a name; loads it into `namespace` and gives its value, or
        raises :class:`KeyError`.
    """

    def __init__(self, namespace: dict[str, Any], fetch: Callable[[str], Any]) -> None:
        super().__init__(vars(builtins))
        self._namespace = namespace
        self._fetch = fetch

    def __missing__(self, name: str) -> Any:
        __tracebackhide__ = True
        # Code run with other globals inherits these builtins: it must not see variables.
        if sys._getframe(1).f_globals is self._namespace:
            try:
                return self._fetch(name)
            except KeyError:
                pass
        value = vars(builtins).get(name, _MISSING)
        if value is _MISSING:
            raise KeyError(name)
        return value

    # `__builtins__` is a module in a usual session, and some code treats it as one.

    def __getattr__(self, name: str) -> Any:
        return getattr(builtins, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_namespace", "_fetch"):
            object.__setattr__(self, name, value)
        else:
            setattr(builtins, name, value)

    def __dir__(self) -> list[str]:
        return dir(builtins)

    def __repr__(self) -> str:
        return repr(builtins)

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return (getattr, (builtins, "__dict__"))


class SyncedBuiltins(types.ModuleType):
    """Class of the ``builtins`` module: what code patches there is seen at once."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        for mirror in _mirrors:
            if name not in mirror.__dict__.get("shadowed", ()):
                mirror[name] = value

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        for mirror in _mirrors:
            mirror.pop(name, None)


_mirrors: list[LazyBuiltins] = []


class MainModule(types.ModuleType):
    """Class of ``__main__``: attributes and ``from __main__ import`` find saved names."""

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        hooks = _hooks.get(id(self))
        if hooks is not None:
            try:
                return hooks.fetch(name)
            except KeyError:
                pass
        raise AttributeError(f"module '__main__' has no attribute {name!r}")

    def __dir__(self) -> Iterable[str]:
        hooks = _hooks.get(id(self))
        names = set(_MODULE_DICT.__get__(self))
        return sorted(names | set(hooks.names()) if hooks else names)

    def __delattr__(self, name: str) -> None:
        hooks = _hooks.get(id(self))
        if hooks is not None:
            hooks.touch(name)
        super().__delattr__(name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        namespace: dict[str, Any] = _MODULE_DICT.__get__(self)
        hooks = _hooks.get(id(self))
        if hooks is not None:
            caller = str(sys._getframe(1).f_globals.get("__name__"))
            quiet = caller in _QUIET_READERS or caller.startswith(("IPython.", _OWN))
            if not quiet or caller == __name__:  # `vars`, below, is called by the user
                hooks.expose()
        return namespace


class Hooks:
    """What the lazy namespace needs from the session."""

    def __init__(
        self,
        namespace: dict[str, Any],
        fetch: Callable[[str], Any],
        names: Callable[[], Iterable[str]],
        expose: Callable[[], None],
    ) -> None:
        self.namespace = namespace
        self.fetch = fetch
        self.names = names
        self.expose = expose

    def touch(self, name: str) -> None:
        """Load a name if it is saved and absent, so that it can be deleted."""
        if name not in self.namespace:
            try:
                self.fetch(name)
            except KeyError:
                pass


_hooks: dict[int, Hooks] = {}


def install(hooks: Hooks, shadowed: Iterable[str]) -> None:
    """Make a namespace lazy.

    Parameters
    ----------
    hooks : Hooks
        The session's side.
    shadowed : iterable of str
        Saved variables named like builtins: they must win over them.
    """
    namespace = hooks.namespace
    lazy = LazyBuiltins(namespace, hooks.fetch)
    lazy.update(_views(hooks))
    for name in shadowed:
        lazy.pop(name, None)
    object.__setattr__(lazy, "shadowed", frozenset(shadowed) | {"globals", "locals", "vars", "dir"})
    _mirrors.append(lazy)
    namespace["__builtins__"] = lazy
    builtins.__class__ = SyncedBuiltins
    main = sys.modules.get("__main__")
    if main is not None and _MODULE_DICT.__get__(main) is namespace:
        _hooks[id(main)] = hooks
        main.__class__ = MainModule


def _views(hooks: Hooks) -> dict[str, Any]:
    """``globals``, ``locals``, ``vars`` and ``dir`` which know the saved names."""
    namespace = hooks.namespace
    real_vars, real_dir = builtins.vars, builtins.dir

    def caller_locals() -> Any:
        frame = sys._getframe(2)
        found = frame.f_locals
        if found is namespace:
            hooks.expose()
            return namespace
        # Since 3.13 a function's `f_locals` writes through; `locals()` never did.
        return found if type(found) is dict else dict(found)

    def globals() -> dict[str, Any]:  # noqa: A001
        """Return the dictionary containing the current scope's global variables."""
        found = sys._getframe(1).f_globals
        if found is namespace:
            hooks.expose()
        return found

    def locals() -> Any:  # noqa: A001
        """Return a dictionary containing the current scope's local variables."""
        return caller_locals()

    def vars(*args: Any) -> Any:  # noqa: A001
        """Return the __dict__ of an object, or the current scope's local variables."""
        return real_vars(*args) if args else caller_locals()

    def dir(*args: Any) -> list[str]:  # noqa: A001
        """Return the names in the current scope, or the attributes of an object."""
        if args:
            return real_dir(*args)
        found = sys._getframe(1).f_locals
        names = set(found)
        return sorted(names | set(hooks.names()) if found is namespace else names)

    return {"globals": globals, "locals": locals, "vars": vars, "dir": dir}

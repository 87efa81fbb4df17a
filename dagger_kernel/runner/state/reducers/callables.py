"""Callables of ``functools``: partials, and cached functions with the results in their caches."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import itertools
import weakref
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..rebuild import rebuilder
from .functions import importable_name

if TYPE_CHECKING:
    from ..pickler import StatePickler


MAX_COUNTED = 100_000
"""Hits and misses of a cache beyond these are not counted again: each is a call."""


@reduces(functools.partial)
def reduce_partial(_pickler: StatePickler, value: Any) -> Any:
    """Save a partial; its function is filled in later, as it may lead back to it."""
    if type(value) is not functools.partial:
        return value.__reduce__()
    state = (value.func, value.args, value.keywords, vars(value) or None)
    return (functools.partial, (_nothing,), state)


@rebuilder
def _nothing() -> None:
    """Stand in for a partial's function until it is restored."""


@reduces("functools._lru_cache_wrapper")
def reduce_cached(pickler: StatePickler, value: Any) -> Any:
    """Save a cached function with the results in its cache."""
    name = importable_name(value, pickler.registry)
    if name is not None:
        return pickler.by_name(value, *name)
    parameters = value.cache_parameters()
    info = value.cache_info()
    extra = {k: v for k, v in vars(value).items() if k != "__wrapped__"}
    function, entries = _cache_content(value)
    state = (entries, info.hits, info.misses, extra)
    arguments = (function, parameters["maxsize"], parameters["typed"])
    return (rebuild_cached, arguments, state, None, None, restore_cached)


def _cache_content(wrapper: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """The wrapped function and the (key, result) pairs of a C cache, oldest first."""
    found = gc.get_referents(wrapper)
    function = wrapper.__wrapped__
    if wrapper.cache_info().maxsize is None:
        for item in found:
            if type(item) is dict and item is not vars(wrapper):
                return function, list(item.items())
        return function, []
    count = wrapper.cache_info().currsize
    internal = ("_lru_list_elem", "_lru_cache_wrapper")
    items = [i for i in found if not (isinstance(i, type) and i.__name__ in internal)]
    return function, [(items[2 * n], items[2 * n + 1]) for n in range(count)]


class _MissError(Exception):
    """Raised inside a cache: it counts the call and keeps nothing."""


class _Replay:
    """Answers with saved results while a cache is filled, and calls the function later."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.results: list[Any] = []
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.results:
            result = self.results.pop()
            if result is _MissError:
                raise _MissError
            return result
        return self.function(*args, **kwargs)


@rebuilder
def rebuild_cached(function: Any, maxsize: int | None, typed: bool) -> Any:
    """Make a cached function whose cache is still empty."""
    replay = _Replay(function)
    wrapper: Any = functools.lru_cache(maxsize, typed)(replay)
    functools.update_wrapper(wrapper, function)
    _replays[wrapper] = replay
    return wrapper


_replays: weakref.WeakKeyDictionary[Any, _Replay] = weakref.WeakKeyDictionary()


@rebuilder
def restore_cached(wrapper: Any, state: tuple[Any, ...]) -> None:
    """Fill a cache by calling through it with the saved results at hand."""
    entries, hits, misses, extra = state
    replay = _replays[wrapper]
    typed = wrapper.cache_parameters()["typed"]
    for key, result in entries:
        args, kwargs = _arguments(key, typed=typed)
        replay.results.append(result)
        wrapper(*args, **kwargs)
        replay.results.clear()
    for _ in range(min(misses - len(entries), MAX_COUNTED)):
        replay.results.append(_MissError)
        with contextlib.suppress(_MissError):
            wrapper(replay)  # a key which no call can have used
    if entries:
        args, kwargs = _arguments(entries[-1][0], typed=typed)
        again = itertools.repeat(args, min(hits, MAX_COUNTED))
        collections.deque(itertools.starmap(functools.partial(wrapper, **kwargs), again), 0)
    vars(wrapper).update(extra)


def _arguments(key: Any, *, typed: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Undo the making of a cache key."""
    if type(key) in (int, str):
        return (key,), {}
    parts = list(key)
    mark = next((n for n, part in enumerate(parts) if _is_mark(part)), None)
    if mark is None:
        return tuple(parts[: len(parts) // 2] if typed else parts), {}
    rest = parts[mark + 1 :]
    kwargs: dict[str, Any] = {}
    if typed:
        # types of the positional, then of the keyword arguments, stand at the end
        count = (len(rest) - mark) // 3
        rest = rest[: 2 * count]
    for number in range(0, len(rest), 2):
        kwargs[rest[number]] = rest[number + 1]
    return tuple(parts[:mark]), kwargs


def _is_mark(part: Any) -> bool:
    return type(part) is object

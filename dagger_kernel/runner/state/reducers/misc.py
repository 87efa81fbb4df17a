"""Small builtin types which pickle refuses or gets wrong."""

from __future__ import annotations

import collections
import contextvars
import functools
import gc
import re
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

from ..errors import CannotPersistError
from ..pickler import UNSAVEABLE, reduces
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler

UNSAVEABLE.update(
    {
        "builtins.coroutine": "a coroutine is bound to its running frame; await it in the cell that makes it",
        "builtins.async_generator": "an async generator is bound to its running frame",
        "builtins.frame": "a frame belongs to a process that has ended",
        "_asyncio.Task": "a task ends with its event loop; await it in the cell that makes it",
        "_asyncio.Future": "a future belongs to an event loop that has ended",
        "asyncio.events.AbstractEventLoop": "an event loop ends with its process",
        "asyncio.events.Handle": "an event loop ends with its process",
        "_contextvars.Token": "a token can only be used in the context that made it",
        "socket.socket": "a network connection ends with its process",
        "_socket.socket": "a network connection ends with its process",
        "ssl.SSLSocket": "a network connection ends with its process",
        "select.epoll": "it watches files of a process that has ended",
        "select.poll": "it watches files of a process that has ended",
        "selectors.BaseSelector": "it watches files of a process that has ended",
        "_hashlib.HASH": "its inner state cannot be read; keep the data, or finish it in one cell",
        "_hashlib.HMAC": "its inner state cannot be read; keep the data, or finish it in one cell",
        "_blake2.blake2b": "its inner state cannot be read; keep the data, or finish it in one cell",
        "_blake2.blake2s": "its inner state cannot be read; keep the data, or finish it in one cell",
        "zlib.Compress": "a half-done compression cannot be saved; finish it in one cell",
        "zlib.Decompress": "a half-done decompression cannot be saved; finish it in one cell",
        "_bz2.BZ2Compressor": "a half-done compression cannot be saved; finish it in one cell",
        "_lzma.LZMACompressor": "a half-done compression cannot be saved; finish it in one cell",
        "_csv.reader": "its position cannot be read; make a list of its rows",
        "_csv.writer": "it belongs to an open file; make it again",
        "_cffi_backend.FFI": "foreign memory cannot be saved",
        "posix.ScandirIterator": "its position cannot be read; make a list of it",
        "os.DirEntry": "it belongs to a directory listing; use a path",
        "posix.DirEntry": "it belongs to a directory listing; use a path",
        "weakref.finalize": "what it watches is another object in the next cell; make it again",
        "_ctypes.CFuncPtr": "a C function pointer is valid in one process only",
        "multiprocessing.pool.Pool": "its worker processes end with the cell",
        "multiprocessing.process.BaseProcess": "a child process ends with the cell",
        "multiprocessing.connection._ConnectionBase": "a pipe ends with its process",
        "multiprocessing.synchronize.SemLock": "a lock between processes ends with them",
        "multiprocessing.queues.Queue": "a queue between processes ends with them",
        "multiprocessing.queues.SimpleQueue": "a queue between processes ends with them",
        "multiprocessing.managers.BaseManager": "its server process ends with the cell",
        "http.client.HTTPConnection": "a network connection ends with its process",
        "http.client.HTTPResponse": "a network connection ends with its process",
        "smtplib.SMTP": "a network connection ends with its process",
        "ftplib.FTP": "a network connection ends with its process",
        "socketserver.BaseServer": "a server ends with its cell",
        "_ssl._SSLContext": "an SSL context cannot be read back; make it again",
    }
)


@reduces(types.MappingProxyType)
def reduce_proxy(_pickler: StatePickler, value: Any) -> Any:
    """Save a mapping proxy as a proxy of the same mapping."""
    inner = gc.get_referents(value)[0]
    if isinstance(inner, type):
        return (vars, (inner,))
    # A class's own dictionary cannot be taken hold of; its proxy is `vars(cls)`.
    for content in list(inner.values()) if type(inner) is dict and "__module__" in inner else ():
        owner = getattr(content, "__objclass__", None)
        if isinstance(owner, type) and gc.get_referents(vars(owner))[0] is inner:
            return (vars, (owner,))
    return (types.MappingProxyType, (inner,))


_ordered: Any = collections.OrderedDict()


@reduces(
    *map(type, ({}.keys(), {}.values(), {}.items())),
    *map(type, (_ordered.keys(), _ordered.values(), _ordered.items())),
)
def reduce_view(_pickler: StatePickler, value: Any) -> Any:
    """Save a dictionary view as a view of the same dictionary."""
    owner = value.mapping
    inner = gc.get_referents(owner)[0]
    return (getattr(type(inner), type(value).__name__.partition("_")[2]), (inner,))


@reduces(memoryview)
def reduce_memoryview(_pickler: StatePickler, value: memoryview) -> Any:
    """Save a memory view as a view of the same object."""
    try:
        owner = value.obj
    except ValueError:
        return (rebuild_released, ())
    if value.ndim == 1 and value.contiguous and value.nbytes and owner is not None:
        from ..memory import address_of

        offset = address_of(value) - address_of(memoryview(owner))
        return (rebuild_memoryview, (owner, offset, value.nbytes, value.format, value.readonly))
    whole = memoryview(owner)
    if (whole.shape, whole.strides, whole.format) == (value.shape, value.strides, value.format):
        return (memoryview, (owner,))
    raise CannotPersistError("a memory view with steps cannot be saved")


@rebuilder
def rebuild_memoryview(owner: Any, offset: int, size: int, kind: str, readonly: bool) -> memoryview:
    """Make a view of part of an object."""
    view = memoryview(owner).cast("B")[offset : offset + size]
    if kind != "B":
        view = view.cast(kind)  # type: ignore[call-overload]
    return view.toreadonly() if readonly and not view.readonly else view


@rebuilder
def rebuild_released() -> memoryview:
    """Make a released view."""
    view = memoryview(b"")
    view.release()
    return view


@reduces(weakref.ReferenceType)
def reduce_weakref(_pickler: StatePickler, value: Any) -> Any:
    """Save a weak reference: to the same object, which is saved with it."""
    target = value()
    if target is None:
        return (rebuild_dead_reference, ())
    return (weakref.ref, (target,) if value.__callback__ is None else (target, value.__callback__))


@rebuilder
def rebuild_dead_reference() -> Any:
    """Make a weak reference whose object is gone."""
    return weakref.ref(_Gone())


class _Gone:
    """Dies at once."""


@reduces("weakref.KeyedRef", "weakref.WeakMethod")
def reduce_keyed(_pickler: StatePickler, value: Any) -> Any:
    """Refuse the parts of weak containers; the containers rebuild them."""
    if type(value).__name__ == "WeakMethod" and value() is not None:
        return (weakref.WeakMethod, (value(),))
    raise CannotPersistError("it belongs to a weak dictionary")


@reduces("weakref.WeakValueDictionary", "weakref.WeakKeyDictionary")
def reduce_weak_mapping(_pickler: StatePickler, value: Any) -> Any:
    """Save a weak dictionary with what is alive in it."""
    return (type(value), (), None, None, iter(list(value.items())))


@reduces("_weakrefset.WeakSet")
def reduce_weak_set(_pickler: StatePickler, value: Any) -> Any:
    """Save a weak set with what is alive in it."""
    return (type(value), (list(value),))


@reduces("weakref.ProxyType", "weakref.CallableProxyType")
def reduce_weak_proxy(_pickler: StatePickler, value: Any) -> Any:
    """Save a weak proxy."""
    try:
        return (weakref.proxy, (value.__reduce_ex__.__self__,))
    except ReferenceError:
        return (rebuild_dead_proxy, ())


@rebuilder
def rebuild_dead_proxy() -> Any:
    """Make a weak proxy whose object is gone."""
    return weakref.proxy(_Gone())


@reduces(super)
def reduce_super(_pickler: StatePickler, value: Any) -> Any:
    """Save a ``super()`` object, whose own attributes hide behind those it looks up."""
    cls: Any = vars(super)["__thisclass__"].__get__(value)
    target = vars(super)["__self__"].__get__(value)
    return (super, (cls,) if target is None else (cls, target))


@reduces(re.Match)
def reduce_match(_pickler: StatePickler, value: re.Match[Any]) -> Any:
    """Save a match as the search that gives it."""
    pattern, string = value.re, value.string
    wanted = (value.span(), value.regs)
    attempts = [("match", value.pos, value.endpos), ("search", value.pos, value.endpos),
                ("fullmatch", value.pos, value.endpos), ("match", value.start(), value.endpos),
                ("fullmatch", value.start(), value.end())]  # fmt: skip
    for method, start, stop in attempts:
        found = getattr(pattern, method)(string, start, stop)
        if found is not None and (found.span(), found.regs) == wanted:
            return (rebuild_match, (pattern, method, string, start, stop))
    raise CannotPersistError("the search that made it cannot be repeated")


@rebuilder
def rebuild_match(pattern: re.Pattern[Any], method: str, string: Any, start: int, stop: int) -> Any:
    """Search again."""
    return getattr(pattern, method)(string, start, stop)


@reduces(types.TracebackType)
def reduce_traceback(_pickler: StatePickler, value: types.TracebackType) -> Any:
    """Save where a traceback points; the frames' variables ended with their process."""
    entries = []
    step: types.TracebackType | None = value
    while step is not None:
        code = step.tb_frame.f_code
        entries.append((code.co_filename, code.co_name, step.tb_lineno))
        step = step.tb_next
    return (rebuild_traceback, (tuple(entries),))


@rebuilder
def rebuild_traceback(entries: tuple[tuple[str, str, int], ...]) -> types.TracebackType | None:
    """Make a traceback which points at the same lines."""
    following: types.TracebackType | None = None
    for filename, name, line in reversed(entries):
        code = compile("\n" * max(0, line - 1) + "raise marker", filename, "exec")
        code = code.replace(co_name=name)
        marker = RuntimeError()
        try:
            exec(code, {"marker": marker, "__name__": "__main__", "__file__": filename})
        except RuntimeError as error:
            made = error.__traceback__.tb_next if error.__traceback__ is not None else None
            if made is not None:
                following = types.TracebackType(following, made.tb_frame, made.tb_lasti, line)
    return following


@reduces(contextvars.ContextVar)
def reduce_context_variable(_pickler: StatePickler, value: contextvars.ContextVar[Any]) -> Any:
    """Save a context variable with its current value."""
    # The default is not an attribute; an empty context tells it.
    default = contextvars.Context().run(_default_of, value)
    current = contextvars.copy_context().get(value, _NOTHING)
    return (
        rebuild_context_variable,
        (value.name, default[0], default[1:]),
        (current is not _NOTHING, None if current is _NOTHING else current),
        None,
        None,
        restore_context_variable,
    )


_NOTHING = object()


def _default_of(variable: contextvars.ContextVar[Any]) -> tuple[Any, ...]:
    try:
        return (True, variable.get())
    except LookupError:
        return (False,)


@rebuilder
def rebuild_context_variable(name: str, has_default: bool, default: tuple[Any, ...]) -> Any:
    """Make a context variable."""
    if has_default:
        return contextvars.ContextVar(name, default=default[0])
    return contextvars.ContextVar(name)


@rebuilder
def restore_context_variable(variable: Any, state: tuple[bool, Any]) -> None:
    """Set a context variable's value."""
    if state[0]:
        variable.set(state[1])


@reduces(contextvars.Context)
def reduce_context(_pickler: StatePickler, value: contextvars.Context) -> Any:
    """Save a context as its variables' values."""
    return (rebuild_context, (), list(value.items()), None, None, restore_context)


@rebuilder
def rebuild_context() -> contextvars.Context:
    """Make an empty context."""
    return contextvars.Context()


@rebuilder
def restore_context(context: contextvars.Context, items: list[tuple[Any, Any]]) -> None:
    """Fill a context."""
    for variable, value in items:
        context.run(variable.set, value)


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
    from .functions import importable_name

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


class _Replay:
    """Answers with saved results while a cache is filled, and calls the function later."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.results: list[Any] = []
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.results:
            return self.results.pop()
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
    entries, hits, _misses, extra = state
    replay = _replays[wrapper]
    typed = wrapper.cache_parameters()["typed"]
    for key, result in entries:
        args, kwargs = _arguments(key, typed=typed)
        replay.results.append(result)
        wrapper(*args, **kwargs)
        replay.results.clear()
    if entries:
        args, kwargs = _arguments(entries[-1][0], typed=typed)
        for _ in range(min(hits, 10_000)):
            wrapper(*args, **kwargs)
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


@reduces(object)
def reduce_plain_object(pickler: StatePickler, value: object) -> Any:
    """Save a bare ``object()``: a sentinel, compared by identity."""
    for module in ("functools", "dataclasses", "inspect", "typing"):
        found = sys.modules.get(module)
        for name in ("_kwd_mark", "kwd_mark", "MISSING", "_empty", "_MISSING"):
            if found is not None and getattr(found, name, None) is value:
                return pickler.by_name(value, module, name)
    return (object, ())


@reduces("_struct.Struct")
def reduce_struct(_pickler: StatePickler, value: Any) -> Any:
    """Save a compiled struct as its format."""
    return (type(value), (value.format,))


@reduces("_json.Scanner")
def reduce_scanner(_pickler: StatePickler, value: Any) -> Any:
    """Save the C part of a JSON decoder as its options."""
    names = (
        "strict",
        "object_hook",
        "object_pairs_hook",
        "parse_float",
        "parse_int",
        "parse_constant",
    )
    return (rebuild_scanner, ({name: getattr(value, name) for name in names},))


@rebuilder
def rebuild_scanner(options: dict[str, Any]) -> Any:
    """Make the C part of a JSON decoder."""
    from json.scanner import make_scanner

    return make_scanner(types.SimpleNamespace(memo={}, **options))  # type: ignore[arg-type]


@reduces("_ctypes._Pointer")
def reduce_pointer(_pickler: StatePickler, value: Any) -> Any:
    """Save a ctypes pointer with what it points at."""
    if not value:
        return (type(value), ())
    kept = value._objects
    target = kept.get("1") if isinstance(kept, dict) else None
    if target is None:
        raise CannotPersistError("it points to memory which Python does not own")
    return (type(value), (target,))


@reduces("ctypes.CDLL")
def reduce_library(_pickler: StatePickler, value: Any) -> Any:
    """Save a loaded C library as its name, with the types its functions were told."""
    functions = {
        name: (item.restype, item.argtypes)
        for name, item in vars(value).items()
        if isinstance(item, value._FuncPtr)
    }
    return (rebuild_library, (type(value), value._name), functions, None, None, restore_library)


@rebuilder
def rebuild_library(kind: Any, name: str | None) -> Any:
    """Load a C library."""
    return kind(name)


@rebuilder
def restore_library(library: Any, functions: dict[str, tuple[Any, Any]]) -> None:
    """Tell a library's functions their types."""
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments

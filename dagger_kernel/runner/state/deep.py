"""Very deep structures: the C pickler recurses on the C stack and gives up early."""

from __future__ import annotations

import pickle
import sys
import threading
from typing import TYPE_CHECKING, Any

from .pickler import StatePickler

if TYPE_CHECKING:
    from collections.abc import Callable

    from .graph import Registry

_STACK = 512 << 20
_DEPTH = 400_000
_NATIVE = frozenset(
    {type(None), bool, int, float, str, bytes, bytearray, tuple, list, dict, set, frozenset,
     pickle.PickleBuffer}
)  # fmt: skip


class _Deep(pickle._Pickler):
    """The pure Python pickler with the state pickler's reducers."""

    def __init__(self, state: StatePickler) -> None:
        super().__init__(state.sink, 5, buffer_callback=state._keep_buffer)
        self._state = state

    def reducer_override(self, value: Any) -> Any:
        # The C pickler asks for other types only.
        return NotImplemented if type(value) in _NATIVE else self._state.reducer_override(value)


class _DeepPickler(StatePickler):
    """A state pickler whose dump was done elsewhere."""

    deep: Any = None

    @property  # type: ignore[misc] # read-only on purpose: the dump is over
    def memo(self) -> Any:
        return self.deep.memo


def dump_deep(registry: Registry, inline: frozenset[str], label: str, root: Any) -> StatePickler:
    """Dump `root` in a thread with a large stack."""
    if sys.version_info < (3, 12):
        # Here the interpreter's limit is the only one, also for C.
        quick = StatePickler(registry, inline, label)
        if _run(lambda: quick.dump(root), 50_000):
            return quick
    state = _DeepPickler(registry, inline, label)
    state.deep = _Deep(state)
    if not _run(lambda: state.deep.dump(root), _DEPTH):
        raise RuntimeError("it is nested too deeply")
    return state


def _run(work: Callable[[], None], depth: int) -> bool:
    """Run something deep; tell whether the depth was enough."""
    failure: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failure.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(depth)
    try:
        thread = threading.Thread(target=guarded)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if failure and not isinstance(failure[0], RecursionError):
        raise failure[0]
    return not failure

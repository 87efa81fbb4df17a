"""Very deep structures: the C pickler recurses on the C stack and gives up early."""

from __future__ import annotations

import pickle
import sys
import threading
from typing import TYPE_CHECKING, Any

from .pickler import StatePickler

if TYPE_CHECKING:
    from .graph import Registry

_STACK = 512 << 20
_DEPTH = 400_000


class _Deep(pickle._Pickler):  # type: ignore[name-defined]
    """The pure Python pickler with the state pickler's reducers."""

    def __init__(self, state: StatePickler) -> None:
        super().__init__(state.sink, 5, buffer_callback=state._keep_buffer)
        self._state = state

    def reducer_override(self, value: Any) -> Any:
        return self._state.reducer_override(value)


class _DeepPickler(StatePickler):
    """A state pickler whose dump was done elsewhere."""

    deep: Any = None

    @property
    def memo(self) -> Any:  # type: ignore[override]
        return self.deep.memo


def dump_deep(registry: Registry, inline: frozenset[str], label: str, root: Any) -> StatePickler:
    """Dump `root` in a thread with a large stack."""
    state = _DeepPickler(registry, inline, label)
    state.deep = _Deep(state)
    # The namespace was named in the first attempt's stream; this one starts anew.
    failure: list[BaseException] = []

    def work() -> None:
        try:
            state.deep.dump(root)
        except BaseException as error:
            failure.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(_DEPTH)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if failure:
        if isinstance(failure[0], RecursionError):
            raise RuntimeError("it is nested too deeply")
        raise failure[0]
    return state

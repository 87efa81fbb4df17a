"""Locks and threads.

A lock comes back in the state it was in. Nothing that ran in the background
lives on: its process is gone.
"""

from __future__ import annotations

import _thread
import queue
import threading
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler


@reduces(_thread.LockType)
def reduce_lock(_pickler: StatePickler, value: Any) -> Any:
    """Save a lock, locked or not."""
    return (rebuild_lock, (value.locked(),))


@rebuilder
def rebuild_lock(locked: bool) -> Any:
    """Make a lock."""
    lock = _thread.allocate_lock()
    if locked:
        lock.acquire()
    return lock


@reduces(_thread.RLock)
def reduce_rlock(_pickler: StatePickler, value: Any) -> Any:
    """Save a reentrant lock with the number of times the main thread holds it."""
    if not value._is_owned():
        if not value.acquire(blocking=False):
            raise CannotPersistError("a thread which has ended still holds it")
        value.release()
        return (rebuild_rlock, (0,))
    # Only `_release_save` tells the depth, and lets go of the lock meanwhile.
    saved = value._release_save()
    value._acquire_restore(saved)
    return (rebuild_rlock, (int(saved[0]),))


@rebuilder
def rebuild_rlock(depth: int) -> Any:
    """Make a reentrant lock."""
    lock = _thread.RLock()
    for _ in range(depth):
        lock.acquire()
    return lock


@reduces("_queue.SimpleQueue")
def reduce_simple_queue(_pickler: StatePickler, value: Any) -> Any:
    """Save a queue with what waits in it."""
    items = []
    while not value.empty():
        items.append(value.get_nowait())
    for item in items:
        value.put(item)
    return (rebuild_simple_queue, (), items, None, None, restore_simple_queue)


@rebuilder
def rebuild_simple_queue() -> Any:
    """Make an empty queue."""
    return queue.SimpleQueue()


@rebuilder
def restore_simple_queue(made: Any, items: list[Any]) -> None:
    """Fill a queue."""
    for item in items:
        made.put(item)


@reduces("_thread._local")
def reduce_local(_pickler: StatePickler, value: Any) -> Any:
    """Save thread-local data of the main thread."""
    return (rebuild_local, (type(value),), dict(vars(value)), None, None, restore_local)


@rebuilder
def rebuild_local(cls: Any) -> Any:
    """Make thread-local data."""
    return cls.__new__(cls)


@rebuilder
def restore_local(value: Any, content: dict[str, Any]) -> None:
    """Fill thread-local data."""
    vars(value).update(content)


@reduces("threading.Thread")
def reduce_thread(pickler: StatePickler, value: threading.Thread) -> Any:
    """Save a thread which has not started, or has ended."""
    if value is threading.main_thread():
        return (threading.main_thread, ())
    if value.is_alive():
        raise CannotPersistError("a running thread ends with its cell; join it there")
    started = value.ident is not None
    own = {
        name: item
        for name, item in vars(value).items()
        if name not in _THREAD_INTERNALS
        and not (started and name in ("_target", "_args", "_kwargs"))
    }
    del pickler
    identity = (value.ident, value.native_id)
    return (
        rebuild_thread,
        (type(value), value.name, value.daemon, identity if started else None),
        own,
        None,
        None,
        restore_local,
    )


_THREAD_INTERNALS = frozenset(
    {"_tstate_lock", "_handle", "_started", "_is_stopped", "_stderr", "_invoke_excepthook",
     "_initialized", "_ident", "_native_id", "_name", "_daemonic", "_os_thread_handle", "_context"}
)  # fmt: skip


@rebuilder
def rebuild_thread(cls: Any, name: str, daemon: bool, identity: Any) -> threading.Thread:
    """Make a thread which is new, or which has ended."""
    made: Any = cls.__new__(cls)
    threading.Thread.__init__(made, name=name, daemon=daemon)
    if identity is not None:
        made._started.set()
        made._ident, made._native_id = identity
        if hasattr(made, "_tstate_lock"):
            made._is_stopped = True
        if hasattr(_thread, "_make_thread_handle"):  # since 3.13
            made._handle = _thread._make_thread_handle(identity[0])
            made._handle._set_done()
    return made


@reduces("concurrent.futures._base.Future")
def reduce_future(_pickler: StatePickler, value: Any) -> Any:
    """Save a finished future."""
    if value._state not in ("FINISHED", "CANCELLED", "CANCELLED_AND_NOTIFIED"):
        if value._state == "PENDING" and not value._done_callbacks and not value._waiters:
            return (rebuild_future, ("PENDING",), (None, None), None, None, restore_future)
        raise CannotPersistError(
            "what would finish this future ends with the cell; wait for it there"
        )
    state = (value._result, value._exception)
    return (rebuild_future, (value._state,), state, None, None, restore_future)


@rebuilder
def rebuild_future(state: str) -> Any:
    """Make a future."""
    from concurrent.futures import Future

    made: Any = Future()
    made._state = state
    return made


@rebuilder
def restore_future(future: Any, content: tuple[Any, Any]) -> None:
    """Set a future's outcome."""
    future._result, future._exception = content


@reduces("concurrent.futures.thread.ThreadPoolExecutor")
def reduce_thread_pool(_pickler: StatePickler, value: Any) -> Any:
    """Save a pool as a new one of the same size."""
    arguments = (value._max_workers, value._thread_name_prefix, value._shutdown)
    state = (value._initializer, value._initargs)
    return (rebuild_thread_pool, arguments, state, None, None, restore_pool)


@rebuilder
def rebuild_thread_pool(workers: int, prefix: str, ended: bool) -> Any:
    """Make a thread pool."""
    from concurrent.futures import ThreadPoolExecutor

    made = ThreadPoolExecutor(workers, prefix)
    if ended:
        made.shutdown()
    return made


@rebuilder
def restore_pool(pool: Any, state: tuple[Any, ...]) -> None:
    """Set a pool's initializer."""
    pool._initializer, pool._initargs = state


@reduces("concurrent.futures.process.ProcessPoolExecutor")
def reduce_process_pool(_pickler: StatePickler, value: Any) -> Any:
    """Save a process pool as a new one of the same size."""
    ended = bool(value._shutdown_thread)
    state = (value._initializer, value._initargs)
    return (rebuild_process_pool, (value._max_workers, ended), state, None, None, restore_pool)


@rebuilder
def rebuild_process_pool(workers: int, ended: bool) -> Any:
    """Make a process pool."""
    from concurrent.futures import ProcessPoolExecutor

    made = ProcessPoolExecutor(workers)
    if ended:
        made.shutdown()
    return made


@reduces("subprocess.Popen")
def reduce_process(_pickler: StatePickler, value: Any) -> Any:
    """Save a process which has ended."""
    if value.poll() is None:
        raise CannotPersistError("a child process ends with the cell; wait for it there")
    streams = tuple(getattr(value, name) for name in ("stdin", "stdout", "stderr"))
    kept = tuple(s if s is not None and s.closed else None for s in streams)
    if any(s is not None and not s.closed for s in streams):
        raise CannotPersistError("its pipes end with the cell; read them there")
    own = {k: v for k, v in vars(value).items() if k not in ("stdin", "stdout", "stderr")}
    return (rebuild_process, (type(value),), {**own, **dict(zip(("stdin", "stdout", "stderr"), kept, strict=True))},
            None, None, restore_local)  # fmt: skip


@rebuilder
def rebuild_process(cls: Any) -> Any:
    """Make a process object which has ended."""
    made = cls.__new__(cls)
    made._child_created = False
    return made

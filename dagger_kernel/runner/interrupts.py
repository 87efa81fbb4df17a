"""Interrupts and limits as they strike the cell process.

SIGINT becomes a KeyboardInterrupt while user code runs, and is remembered until then. User code may set
handlers of its own for SIGINT: ours stays in front of them, so that the supervisor learns that the
interrupt reached Python (and need not end the process).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from .limits import CLASSES, LimitReached, describe
from .page import RUNNING, SharedPage

LIMIT_SIGNAL = signal.SIGRTMAX - 1
"""How the supervisor says that a limit strikes; which one stands on the shared page."""

WAKE_SIGNAL = signal.SIGRTMAX - 2
"""How the supervisor says that a message waits while the cell process warms up."""

OURS = (signal.SIGINT, LIMIT_SIGNAL, WAKE_SIGNAL)
"""Signals between supervisor and cell process; blocked from the fork until `Interrupts.install`."""


class Interrupts:
    """Turn signals into exceptions, at the right moments only."""

    def __init__(self, page: SharedPage) -> None:
        self.page = page
        self.pid = os.getpid()
        self.pending = False
        self.limits: dict[str, float] = {}
        self.on_wake: Callable[[], None] = lambda: None
        self._handler: Any = signal.default_int_handler
        self._signal = signal.signal
        self._getsignal = signal.getsignal
        self._unraisable = sys.unraisablehook

    def install(self) -> None:
        """Take over SIGINT and the supervisor's signals."""
        self._signal(signal.SIGINT, self._on_interrupt)
        self._signal(LIMIT_SIGNAL, self._on_limit)
        self._signal(WAKE_SIGNAL, lambda _number, _frame: self.on_wake())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, OURS)
        self._unraisable = sys.unraisablehook
        sys.unraisablehook = self._on_unraisable
        signal.signal = self._set_handler
        signal.getsignal = self._get_handler

    def start(self) -> None:
        """User code starts: from here on interrupts raise.

        Raises
        ------
        KeyboardInterrupt
            One came before.
        """
        self.page.phase = RUNNING
        if self.pending:
            self.pending = False
            raise KeyboardInterrupt

    @property
    def happened(self) -> bool:
        """Whether an interrupt came."""
        return self.page.noticed > 0

    def _on_interrupt(self, number: int, frame: FrameType | None) -> Any:
        if os.getpid() != self.pid:
            # A forked child of the cell: it has its own life.
            return self._call(number, frame)
        self.page.noticed += 1
        if self.page.phase != RUNNING:
            self.pending = True
            return None
        return self._call(number, frame)

    def _call(self, number: int, frame: FrameType | None) -> Any:
        if callable(self._handler):
            return self._handler(number, frame)
        if self._handler == signal.SIG_IGN:
            return None
        raise KeyboardInterrupt

    def _on_limit(self, _number: int, _frame: FrameType | None) -> None:
        reason = self.page.limit
        if os.getpid() == self.pid and self.page.phase == RUNNING and reason:
            raise CLASSES[reason](describe(reason, self.limits))

    def _on_unraisable(self, unraisable: Any) -> None:
        """An exception is thrown away (a finalizer, a hook of fork): if it is ours, ask for another."""
        if isinstance(unraisable.exc_value, (KeyboardInterrupt, LimitReached)):
            if os.getpid() == self.pid and self.page.phase == RUNNING:
                self.page.swallowed += 1
        else:
            self._unraisable(unraisable)

    def _set_handler(self, signalnum: Any, handler: Any) -> Any:
        """Stand in for ``signal.signal``."""
        if signalnum != signal.SIGINT or os.getpid() != self.pid:
            return self._signal(signalnum, handler)
        ignoring = handler == signal.SIG_IGN
        if not callable(handler) and handler not in (signal.SIG_IGN, signal.SIG_DFL):
            return self._signal(signalnum, handler)  # raises Python's own error
        # Refused outside the main thread, as always.
        self._signal(signalnum, signal.SIG_IGN if ignoring else self._on_interrupt)
        previous, self._handler = self._handler, handler
        self.page.ignoring = ignoring
        return previous

    def _get_handler(self, signalnum: Any) -> Any:
        """Stand in for ``signal.getsignal``."""
        if signalnum == signal.SIGINT and os.getpid() == self.pid:
            return self._handler
        return self._getsignal(signalnum)

"""Making the shell and getting it warm: what is touched before a fork costs no cell anything."""

from __future__ import annotations

import builtins
import gc
import os
import sys
import sysconfig
import types
from typing import Any

from IPython.core import prefilter
from IPython.core.interactiveshell import ExecutionResult
from IPython.core.profiledir import ProfileDir
from traitlets.config import Config

from . import own
from .display import Outlet
from .history import Results
from .loop import run_in_loop
from .preload import preload
from .shell import Shell

OWN = (
    *(
        f"{__package__}.{name}"
        for name in ("cell", "comms", "quirks", "asks", "bash", "bash_asks", "sources", "state")
    ),
    "IPython.core.guarded_eval",
    "IPython.core.latex_symbols",
)
"""What a fork would otherwise import when its step or a question comes."""
NOWHERE = "/nonexistent/ipython"
"""A directory that IPython finds empty and never makes."""


def make_shell() -> Shell:
    """Make the shell, with ``__main__`` a fresh module."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    # Without it ipykernel's parts (and libraries that look for a kernel) see a terminal.
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.history_length = 0
    config.InteractiveShell.autoindent = False
    config.IPCompleter.use_jedi = False
    # tqdm and others take this for the mark of a kernel.
    config.IPKernelApp.runner = "dagger_kernel"
    main = types.ModuleType(
        "__main__", "Automatically created module for IPython interactive environment"
    )
    shell = Shell.instance(
        config=config,
        user_module=main,
        user_ns=main.__dict__,
        ipython_dir=NOWHERE,
        profile_dir=ProfileDir(),
    )
    sys.modules["__main__"] = main
    shell.loop_runner = run_in_loop
    shell.extension_manager.load_extension("storemagic")  # as kernels do
    is_shadowed = prefilter.is_shadowed

    def shadowed(identifier: str, ip: Any) -> bool:
        """Whether a variable hides a magic: a saved one does too, loaded or not."""
        return bool(is_shadowed(identifier, ip)) or identifier in shell.saved_names()

    prefilter.is_shadowed = shadowed
    Results.install(shell)
    for name in ("_", "__", "___"):
        # `history` makes them when they are looked at.
        shell.user_ns.pop(name, None)
    return shell


def warm() -> Shell:
    """Make the shell, import what every cell needs and run trivial cells, so that forks start warm."""
    shell = make_shell()
    for name in OWN:
        preload(name)
    sysconfig.get_paths()  # reads a large module the first time
    exercise(shell)
    own.keep()
    freeze()
    return shell


def freeze() -> None:
    """Keep the collector's hands off what is loaded: it would write to pages that forks share."""
    gc.collect()
    gc.freeze()


def exercise(shell: Shell) -> None:
    """Run a cell that works and one that fails, then leave no trace of them."""
    before = set(shell.user_ns)
    for source in ("_warm = [1]\n_warm", "1 / 0", "!true"):
        shell.run_cell(source, store_history=True)
    for name in set(shell.user_ns) - before:
        shell.user_ns.pop(name, None)
    forget(shell)


def rehearse(shell: Shell) -> None:
    """Touch what running a cell touches: after a fork, each page of memory is copied at its first use."""
    shell.transform_cell("rehearsal = 1\nrehearsal")
    shell.run_cell("None", silent=True)
    shell.last_execution_result = ExecutionResult(None)


def forget(shell: Shell) -> None:
    """Reset counters and histories of the shell."""
    history = shell.history_manager
    history.input_hist_parsed[:] = [""]
    history.input_hist_raw[:] = [""]
    history.output_hist.clear()
    history.outputs.clear()
    history.exceptions.clear()
    history.output_hist_reprs.clear()
    history.dir_hist[:] = []
    history._i00 = history._i = history._ii = history._iii = ""
    hook = shell.displayhook
    hook._ = hook.__ = hook.___ = ""
    shell.execution_count = 1
    shell.last_stb = None
    shell.limit_reason = ""
    Outlet.errors = 0
    shell.last_execution_result = ExecutionResult(None)
    shell.last_execution_succeeded = True
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    if hasattr(builtins, "_"):
        del builtins._

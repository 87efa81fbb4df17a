"""IPython's own objects are referred to, never copied."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler


def _shell() -> Any:
    module = sys.modules.get("IPython.core.getipython")
    return module.get_ipython() if module is not None else None


@reduces("IPython.core.interactiveshell.InteractiveShell")
def reduce_shell(pickler: StatePickler, value: Any) -> Any:
    """Refer to the shell."""
    if value is not _shell():
        raise CannotPersistError("it is another shell than this notebook's")
    pickler.by_reference.add(id(value))
    return (rebuild_shell, ("",))


@reduces(
    "IPython.core.magic.MagicsManager",
    "IPython.core.displayhook.DisplayHook",
    "IPython.core.displaypub.DisplayPublisher",
    "IPython.core.history.HistoryManager",
    "IPython.core.formatters.DisplayFormatter",
    "IPython.core.completer.Completer",
    "IPython.core.events.EventManager",
    "IPython.core.extensions.ExtensionManager",
    "IPython.core.alias.AliasManager",
    "IPython.core.inputtransformer2.TransformerManager",
    "IPython.core.compilerop.CachingCompiler",
)
def reduce_shell_part(pickler: StatePickler, value: Any) -> Any:
    """Refer to a part of the shell."""
    shell = _shell()
    names = ("magics_manager", "displayhook", "display_pub", "history_manager", "display_formatter",
             "Completer", "events", "extension_manager", "alias_manager",
             "input_transformer_manager", "compile")  # fmt: skip
    for name in names:
        if getattr(shell, name, None) is value:
            pickler.by_reference.add(id(value))
            return (rebuild_shell, (name,))
    raise CannotPersistError("it belongs to another shell")


@reduces("IPython.core.formatters.BaseFormatter")
def reduce_formatter(pickler: StatePickler, value: Any) -> Any:
    """Refer to one of the shell's formatters."""
    for mime, formatter in _shell().display_formatter.formatters.items():
        if formatter is value:
            pickler.by_reference.add(id(value))
            return (rebuild_formatter, (mime,))
    raise CannotPersistError("it belongs to another shell")


@reduces("IPython.core.magic.Magics")
def reduce_magics(pickler: StatePickler, value: Any) -> Any:
    """Refer to IPython's own magics; the user's are instances like any other."""
    from .functions import importable_name
    from .layout import raw_dict

    cls = type(value)
    shell = _shell()
    if importable_name(cls, pickler.registry) is not None:
        if shell is not None and shell.magics_manager.registry.get(cls.__name__) is value:
            pickler.by_reference.add(id(value))
            return (rebuild_magics, (cls.__name__,))
        raise CannotPersistError("magics of a library belong to the shell that loaded them")
    own = {
        k: v
        for k, v in (raw_dict(value) or {}).items()
        if not k.startswith("_trait") and k != "_cross_validation_lock"
    }
    return (rebuild_own_magics, (cls,), own, None, None, restore_own_magics)


@rebuilder
def rebuild_shell(part: str) -> Any:
    """Give the shell, or a part of it."""
    shell = _shell()
    return getattr(shell, part) if part else shell


@rebuilder
def rebuild_formatter(mime: str) -> Any:
    """Give one of the shell's formatters."""
    return _shell().display_formatter.formatters[mime]


@rebuilder
def rebuild_magics(name: str) -> Any:
    """Give magics which the shell has registered."""
    return _shell().magics_manager.registry[name]


@rebuilder
def rebuild_own_magics(cls: Any) -> Any:
    """Make magics of the user's class without its ``__init__``."""
    from IPython.core.magic import Magics

    made = cls.__new__(cls)
    Magics.__init__(made, shell=_shell())
    _shell().magics_manager.registry[cls.__name__] = made
    return made


@rebuilder
def restore_own_magics(made: Any, content: dict[str, Any]) -> None:
    """Set what the user's magics carry."""
    vars(made).update(content)


@reduces("logging.Logger")
def reduce_logger(pickler: StatePickler, value: logging.Logger) -> Any:
    """Refer to a logger by name; ``logging`` keeps its settings."""
    if value is logging.root:
        pickler.by_reference.add(id(value))
        return (logging.getLogger, ())
    if logging.Logger.manager.loggerDict.get(value.name) is value:
        pickler.by_reference.add(id(value))
        return (logging.getLogger, (value.name,))
    content = {k: v for k, v in vars(value).items() if k not in ("manager", "_cache")}
    return (rebuild_logger, (type(value), value.name), content, None, None, restore_logger)


@rebuilder
def rebuild_logger(kind: Any, name: str) -> Any:
    """Make a logger which nobody registered."""
    made = kind.__new__(kind)
    logging.Logger.__init__(made, name)
    return made


@rebuilder
def restore_logger(logger: Any, content: dict[str, Any]) -> None:
    """Set what such a logger carries."""
    vars(logger).update(content)

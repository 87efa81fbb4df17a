"""Context variables, with their values, and contexts."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler


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

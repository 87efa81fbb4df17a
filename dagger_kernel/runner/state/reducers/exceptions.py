"""Exceptions, and tracebacks without the frames' variables."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..rebuild import rebuilder
from .layout import made_by_statement, raw_dict, restore_instance, slot_values

if TYPE_CHECKING:
    from ..pickler import StatePickler

_EXCEPTION_FIELDS = {
    "OSError": ("errno", "strerror", "filename", "filename2"),
    "SyntaxError": ("msg", "filename", "lineno", "offset", "text", "print_file_and_line",
                    "end_lineno", "end_offset"),
    "ImportError": ("msg", "name", "path"),
    "UnicodeError": ("encoding", "object", "start", "end", "reason"),
    "StopIteration": ("value",),
    "SystemExit": ("code",),
    "NameError": ("name",),
    "AttributeError": ("name", "obj"),
}  # fmt: skip


def reduce_exception(_pickler: StatePickler, value: BaseException) -> Any:
    """Save an exception without its ``__init__``, whose signature may differ from ``args``."""
    kind = type(value)
    fields: dict[str, Any] = {}
    for base in kind.__mro__:
        for name in _EXCEPTION_FIELDS.get(base.__name__, ()):
            if base.__module__ == "builtins":
                try:
                    fields[name] = getattr(value, name)
                except AttributeError:
                    continue
    arguments: Any = value.args
    if isinstance(value, BaseExceptionGroup):
        held = value.args[1] if len(value.args) == 2 else ()
        if not isinstance(held, list | tuple) or tuple(map(id, held)) != tuple(
            map(id, value.exceptions)
        ):
            arguments = (value.message, value.exceptions)
    elif isinstance(value, OSError) and fields.get("filename") is not None:
        arguments = (value.errno, value.strerror, value.filename, None, value.filename2)
    state = (
        value.args,
        value.__cause__,
        value.__context__,
        value.__suppress_context__,
        raw_dict(value),
        slot_values(value) or None,
        fields,
        value.__traceback__,
    )
    return (rebuild_exception, (kind, arguments), state, None, None, restore_exception)


@rebuilder
def rebuild_exception(cls: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    """Make an exception without its ``__init__``."""
    for base in cls.__mro__:
        if not made_by_statement(base):
            break
    made = base.__new__(cls, *arguments)
    assert isinstance(made, BaseException)
    return made


@rebuilder
def restore_exception(value: BaseException, state: tuple[Any, ...]) -> None:
    """Set what an exception carries."""
    arguments, cause, context, suppress, attributes, slots, fields, traceback = state
    if not isinstance(value, BaseExceptionGroup):
        value.args = arguments
    for name, content in fields.items():
        try:
            setattr(value, name, content)
        except (AttributeError, TypeError):
            continue
    value.__cause__ = cause
    value.__context__ = context
    value.__suppress_context__ = suppress
    if isinstance(traceback, types.TracebackType):
        value.__traceback__ = traceback
    restore_instance(value, (attributes, slots, None))


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

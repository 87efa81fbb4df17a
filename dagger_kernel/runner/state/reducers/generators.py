"""Suspended generators go on where they stood.

A generator is its code, the place where it waits, its local variables and the
few values on its stack (the iterators of the loops it is in). All of these can
be read. It is rebuilt from a copy of its code whose start jumps to an epilogue
which puts them back and then jumps to the very ``yield`` it waited at. From then
on it runs its own, unchanged instructions.

Where anything does not add up (a stack which cannot be read completely, a wait
inside an ``except`` block, an interpreter not known), the generator is lost and
reported, never restarted.
"""

from __future__ import annotations

import dis
import gc
import inspect
import itertools
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..rebuild import rebuilder

if TYPE_CHECKING:
    from ..pickler import StatePickler

KNOWN = (3, 11) <= sys.version_info[:2] <= (3, 13)
_NOT_HERE = "a running generator is bound to its frame; make a list of it"


class _Holder(list[Any]):
    """Carries a frame's values into code, as a constant; code is hashed with its constants."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


_originals: weakref.WeakKeyDictionary[types.CodeType, types.FunctionType] = (
    weakref.WeakKeyDictionary()
)
_holders: weakref.WeakKeyDictionary[Any, _Holder] = weakref.WeakKeyDictionary()


@reduces(types.GeneratorType)
def reduce_generator(_pickler: StatePickler, value: Any) -> Any:
    """Save a generator: finished, not started, or where it waits."""
    state = inspect.getgeneratorstate(value)
    names = (value.__name__, value.__qualname__)
    if state == inspect.GEN_CLOSED:
        return (rebuild_finished, names)
    if not KNOWN:
        raise CannotPersistError(_NOT_HERE)
    if state == inspect.GEN_RUNNING:
        raise CannotPersistError("it is running")
    function, slots = _frame_content(value)
    code = function.__code__
    if state == inspect.GEN_CREATED:
        return (rebuild_unstarted, (function, _arguments(value.gi_frame, code), names))
    places = _local_places(value.gi_frame, code)
    stack = slots[len(places) :]
    target = _waiting_at(code, value.gi_frame.f_lasti)
    if len(slots) < len(places) or len(stack) != _depth_at(code, target) - 1:
        raise CannotPersistError(
            "it waits inside an expression or an except block; make a list of it"
        )
    if any(isinstance(item, BaseException) for item in stack):
        raise CannotPersistError("it waits inside an except block; make a list of it")
    values = [*slots[: len(places)], *reversed(stack)]
    original = _originals.get(value.gi_code, function)
    arguments = (original, target, places, len(stack), names)
    return (rebuild_suspended, arguments, values, None, None, restore_suspended)


def _frame_content(value: Any) -> tuple[types.FunctionType, list[Any]]:
    """The function of a generator, and the filled slots of its frame in order."""
    found = gc.get_referents(value)
    for number, item in enumerate(found[:-1]):
        if (
            type(item) is types.FunctionType
            and item.__code__ is value.gi_code
            and found[number + 1] is value.gi_code
        ):
            original = _originals.get(value.gi_code)
            return (original or item), found[number + 2 :]
    raise CannotPersistError(_NOT_HERE)


def _local_places(frame: types.FrameType, code: types.CodeType) -> list[int]:
    """Numbers of the local slots which hold something."""
    bound = set(frame.f_locals)
    places = [
        number
        for number, name in enumerate(code.co_varnames)
        if name in code.co_cellvars or name in bound
    ]
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    first = len(code.co_varnames)
    return places + list(range(first, first + len(cells) + len(code.co_freevars)))


def _waiting_at(code: types.CodeType, last: int) -> int:
    """Offset of the ``YIELD_VALUE`` a generator waits at."""
    raw = code.co_code
    wanted = dis.opmap["YIELD_VALUE"]
    for offset in (last, last - 2):
        if 0 <= offset < len(raw) and raw[offset] == wanted:
            return offset
    raise CannotPersistError(_NOT_HERE)


def _depth_at(code: types.CodeType, target: int) -> int:
    """Stack depth before an instruction, from the effects of those before it."""
    instructions = {item.offset: item for item in dis.get_instructions(code)}
    order = sorted(instructions)
    following = dict(itertools.pairwise(order))
    start = next(o for o in order if instructions[o].opname == "RETURN_GENERATOR")
    waiting = [(following[start], 1)]
    table = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    waiting.extend((entry.target, entry.depth + 1 + bool(entry.lasti)) for entry in table)
    known: dict[int, int] = {}
    while waiting:
        offset, depth = waiting.pop()
        while offset not in known:
            known[offset] = depth
            item = instructions[offset]
            argument = item.arg if item.opcode >= dis.HAVE_ARGUMENT else None
            if item.opcode in dis.hasjrel or item.opcode in dis.hasjabs:
                jumped = depth + dis.stack_effect(item.opcode, argument, jump=True)
                waiting.append((item.argval, jumped))
            if item.opname in _ENDS or offset not in following:
                break
            depth += dis.stack_effect(item.opcode, argument, jump=False)
            offset = following[offset]
    return known.get(target, -1)


_ENDS = frozenset(
    {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "RETURN_VALUE",
     "RETURN_CONST", "RERAISE", "RAISE_VARARGS"}
)  # fmt: skip


def _arguments(frame: types.FrameType, code: types.CodeType) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call which has not begun to run."""
    found = frame.f_locals
    count = code.co_argcount
    positional = [found[name] for name in code.co_varnames[:count]]
    keyword = {n: found[n] for n in code.co_varnames[count : count + code.co_kwonlyargcount]}
    after = count + code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        positional += found[code.co_varnames[after]]
        after += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keyword.update(found[code.co_varnames[after]])
    return positional, keyword


@rebuilder
def rebuild_unstarted(function: Any, arguments: Any, names: tuple[str, str]) -> Any:
    """Call a generator function."""
    positional, keyword = arguments
    made = function(*positional, **keyword)
    made.__name__, made.__qualname__ = names
    return made


@rebuilder
def rebuild_finished(name: str, qualname: str) -> Any:
    """Make a generator which has ended."""

    def ended() -> Any:
        yield

    made = ended()
    made.close()
    made.__name__, made.__qualname__ = name, qualname
    return made


@rebuilder
def rebuild_suspended(
    function: types.FunctionType, target: int, places: list[int], stack: int, names: tuple[str, str]
) -> Any:
    """Make a generator which will wait at its place, once its values are put back."""
    holder = _Holder()
    code = _with_epilogue(function.__code__, target, places, stack, holder)
    _originals[code] = function
    clone = types.FunctionType(
        code, function.__globals__, function.__name__, None, function.__closure__
    )
    made = clone()
    made.__name__, made.__qualname__ = names
    _holders[made] = holder
    return made


@rebuilder
def restore_suspended(made: Any, values: list[Any]) -> None:
    """Put the values back and run to the place."""
    holder = _holders.pop(made)
    holder.extend(values)
    next(made)
    holder.clear()


def _with_epilogue(
    code: types.CodeType, target: int, places: list[int], stack: int, holder: _Holder
) -> types.CodeType:
    """Copy code so that it starts by restoring a frame and waiting at `target`."""
    raw = bytearray(code.co_code)
    start = raw.index(dis.opmap["RETURN_GENERATOR"]) + 2
    if start % 2 or raw[start] != dis.opmap["POP_TOP"] or raw[start + 2] != dis.opmap["RESUME"]:
        raise CannotPersistError(_NOT_HERE)
    tail = bytearray([dis.opmap["POP_TOP"], 0, dis.opmap["RESUME"], 0])
    if places or stack:
        tail += _instruction("LOAD_CONST", len(code.co_consts))
        tail += _instruction("UNPACK_SEQUENCE", len(places) + stack)
        for place in places:
            tail += _instruction("STORE_FAST", place)
    tail += _instruction("LOAD_CONST", len(code.co_consts) + 1)
    # A jump counts code units from the instruction after it, which its own size moves.
    size = 2
    while True:
        distance = (len(raw) + len(tail) + size - target) // 2
        jump = _instruction("JUMP_BACKWARD_NO_INTERRUPT", distance)
        if len(jump) == size:
            break
        size = len(jump)
    forward = (len(raw) - start - 4) // 2
    if forward > 0xFFFF:
        raise CannotPersistError(_NOT_HERE)
    raw[start : start + 4] = bytes(
        [dis.opmap["EXTENDED_ARG"], forward >> 8, dis.opmap["JUMP_FORWARD"], forward & 0xFF]
    )
    return code.replace(
        co_code=bytes(raw + tail + jump),
        co_consts=(*code.co_consts, holder, None),
        co_stacksize=max(code.co_stacksize, len(places) + stack + 2),
        co_argcount=0,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
    )


def _instruction(name: str, argument: int) -> bytes:
    """Encode an instruction with its wide argument and its inline caches."""
    found = bytearray()
    for shift in (24, 16, 8):
        if argument >> shift:
            found += bytes([dis.opmap["EXTENDED_ARG"], argument >> shift & 0xFF])
    found += bytes([dis.opmap[name], argument & 0xFF])
    caches: Any = dis._inline_cache_entries  # type: ignore[attr-defined]
    count = caches.get(name, 0) if isinstance(caches, dict) else caches[dis.opmap[name]]
    return bytes(found) + bytes(2 * count)

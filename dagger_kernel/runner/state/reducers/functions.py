"""Functions, closures, methods and code.

A function of the notebook is rebuilt on the *live* namespace, never with a
private copy of its globals: it must see helpers defined later and names rebound
later. Closure cells are objects of their own, so that two functions sharing one
still share it.
"""

from __future__ import annotations

import marshal
import sys
import types
from importlib.util import MAGIC_NUMBER
from typing import TYPE_CHECKING, Any

from ..dispatch import reduces
from ..errors import CannotPersistError
from ..pickler import rebuild_global, rebuild_node
from ..rebuild import current_loader, rebuilder

if TYPE_CHECKING:
    from ..graph import Registry
    from ..pickler import StatePickler

_SAME = "\0same"
"""Stands for the docstring which the code object holds already."""


def importable_name(value: Any, registry: Registry) -> tuple[str, str] | None:
    """Module and path under which a library's function or class can be imported.

    What a user's module defines is not named by its place there: after a reload
    the place holds something else.
    """
    module = getattr(value, "__module__", None)
    path = getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str) or module == "__main__":
        return None
    if module in registry.managed_modules:
        return None
    if "<locals>" in path or "<lambda>" in path:
        return None
    return (module, path) if registry.patched.holds(value, module, path) else None


@reduces(types.FunctionType)
def reduce_function(pickler: StatePickler, function: types.FunctionType) -> Any:
    """Save a function by name, as a node, or by value."""
    registry = pickler.registry
    name = importable_name(function, registry)
    if name is not None:
        by_name = pickler.by_name(function, *name)
        if function.__name__ != name[1].rpartition(".")[2]:
            # Renamed by its own library, as `functools.total_ordering` does.
            return (rebuild_renamed, (*name, function.__name__))
        return by_name
    key = registry.function_key(function)
    if key is not None and key not in pickler.inline:
        pickler.references.add(key)
        pickler.by_reference.add(id(function))
        return (rebuild_node, (key,))
    code = function.__code__
    closure = function.__closure__
    cells = []
    if closure is not None:
        # The cells go into the arguments empty, their contents into the state: a
        # recursive inner function is in its own cell.
        for cell in closure:
            if id(cell) not in pickler.filled_cells:
                pickler.filled_cells.add(id(cell))
                pickler.bare_cells.add(id(cell))
                try:
                    cells.append((cell, cell.cell_contents))
                except ValueError:
                    pass
    arguments = (
        key,
        dump_code(code),
        reduce_globals(pickler, function),
        function.__name__,
        closure,
    )
    return (rebuild_function, arguments, _state(function, cells), None, None, restore_function)


def _state(function: types.FunctionType, cells: list[Any]) -> tuple[Any, ...]:
    code = function.__code__
    documented = code.co_consts[0] if code.co_consts else None
    if not isinstance(documented, str):
        documented = None
    annotations: Any
    if sys.version_info >= (3, 14):
        # Evaluating annotations early would raise where they name what is not there yet.
        annotations = function.__annotate__
        if annotations is None:
            annotations = function.__annotations__ or None
    else:
        annotations = function.__annotations__ or None
    return (
        function.__defaults__,
        function.__kwdefaults__,
        function.__dict__ or None,
        function.__qualname__,
        function.__module__,
        _SAME if function.__doc__ == documented else function.__doc__,
        annotations,
        getattr(function, "__type_params__", ()) or None,
        cells or None,
    )


def reduce_globals(pickler: StatePickler, function: types.FunctionType) -> Any:
    """Name the globals of a function, or give the dictionary itself."""
    found = function.__globals__
    if found is pickler.registry.namespace:
        return None
    name = found.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is not None and vars(module) is found:
        key = pickler.registry.module_key(str(name))
        if key is not None:
            pickler.references.add(key)
        return name
    return found


def dump_code(code: types.CodeType) -> bytes:
    """Serialize code so that equal code gives equal bytes.

    The newer marshal formats mark references by reference count, which differs
    from process to process; version 2 has none.
    """
    try:
        return MAGIC_NUMBER + marshal.dumps(code, 2)
    except ValueError:
        return MAGIC_NUMBER + marshal.dumps(code)


def load_code(data: bytes) -> types.CodeType:
    """Undo :func:`dump_code`; bytecode of another Python would crash this one."""
    if not data.startswith(MAGIC_NUMBER):
        raise ValueError("it was compiled by another version of Python")
    code: types.CodeType = marshal.loads(data[len(MAGIC_NUMBER) :])  # noqa: S302
    return code


@rebuilder
def rebuild_renamed(module: str, path: str, name: str) -> Any:
    """Import a function and call it what it was called."""
    function = rebuild_global(module, path)
    function.__name__ = name
    return function


@rebuilder
def rebuild_function(
    key: str | None, code: bytes, where: Any, name: str, closure: tuple[Any, ...] | None
) -> types.FunctionType:
    """Make a function on the live globals it belongs to."""
    loader = current_loader()
    compiled = load_code(code)
    if where is None:
        found = loader.namespace
    elif isinstance(where, str):
        found = vars(loader.module(where))
    else:
        found = where
    # Interned like the compiler's own: equal functions give equal pickles.
    function = types.FunctionType(compiled, found, sys.intern(name), None, closure)
    if key is not None:
        loader.register(key, function)
    loader.code_loaded(compiled)
    return function


@rebuilder
def restore_function(function: types.FunctionType, state: tuple[Any, ...]) -> None:
    """Set what a function carries besides its code."""
    defaults, keyword_defaults, attributes, qualname, module, doc, notes, parameters, cells = state
    function.__defaults__ = defaults
    function.__kwdefaults__ = keyword_defaults
    if attributes:
        function.__dict__ = attributes
    function.__qualname__ = sys.intern(qualname)
    function.__module__ = sys.intern(module) if type(module) is str else module
    if doc != _SAME:
        function.__doc__ = doc
    if callable(notes):
        function.__annotate__ = notes  # type: ignore[attr-defined]
    elif notes is not None:
        function.__annotations__ = notes
    if parameters is not None:
        function.__type_params__ = parameters  # type: ignore[attr-defined]
    for cell, content in cells or ():
        cell.cell_contents = content


@reduces(types.CellType)
def reduce_cell(pickler: StatePickler, cell: types.CellType) -> Any:
    """Save a closure cell; empty where the function fills it."""
    if id(cell) in pickler.bare_cells:
        return (rebuild_cell, ())
    pickler.filled_cells.add(id(cell))
    try:
        content = (cell.cell_contents,)
    except ValueError:
        return (rebuild_cell, ())
    return (rebuild_cell, (), content, None, None, restore_cell)


@rebuilder
def rebuild_cell() -> types.CellType:
    """Make an empty closure cell."""
    return types.CellType()


@rebuilder
def restore_cell(cell: types.CellType, content: tuple[Any]) -> None:
    """Fill a closure cell."""
    cell.cell_contents = content[0]


@reduces(types.CodeType)
def reduce_code(_pickler: StatePickler, code: types.CodeType) -> Any:
    """Save a code object."""
    return (rebuild_code, (dump_code(code),))


@rebuilder
def rebuild_code(data: bytes) -> types.CodeType:
    """Make a code object."""
    return load_code(data)


@reduces(types.MethodType)
def reduce_method(_pickler: StatePickler, method: types.MethodType) -> Any:
    """Save a bound method with its exact function, which may be overridden by now."""
    return (types.MethodType, (method.__func__, method.__self__))


@reduces(types.BuiltinFunctionType)
def reduce_builtin(pickler: StatePickler, function: types.BuiltinFunctionType) -> Any:
    """Save a C function by name, or bound to the object it belongs to."""
    owner, patched = function.__self__, pickler.registry.patched
    if owner is not None and not isinstance(owner, types.ModuleType):
        module = getattr(function, "__module__", None) or ""
        if patched.holds(function, module, function.__qualname__):
            return pickler.by_name(function, function.__module__, function.__qualname__)
        return (getattr, (owner, function.__name__))
    module = function.__module__ or getattr(owner, "__name__", None)
    for candidate in (module, "builtins"):
        if candidate and patched.holds(function, candidate, function.__qualname__):
            return pickler.by_name(function, candidate, function.__qualname__)
    raise CannotPersistError("it cannot be imported by name")


@reduces(types.MethodDescriptorType, types.WrapperDescriptorType)
def reduce_descriptor(_pickler: StatePickler, value: Any) -> Any:
    """Save a method or slot of a C type, such as ``str.upper``."""
    return (getattr, (value.__objclass__, value.__name__))


@reduces(types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType)
def reduce_class_descriptor(_pickler: StatePickler, value: Any) -> Any:
    """Save the raw descriptor of a C class method, such as ``dict.__dict__['fromkeys']``."""
    return (rebuild_raw_attribute, (value.__objclass__, value.__name__))


@rebuilder
def rebuild_raw_attribute(owner: type, name: str) -> Any:
    """Give an attribute of a class without binding it."""
    return vars(owner)[name]


@reduces(types.MethodWrapperType)
def reduce_method_wrapper(_pickler: StatePickler, value: Any) -> Any:
    """Save a bound slot of a C type, such as ``"".__len__``."""
    return (getattr, (value.__self__, value.__name__))

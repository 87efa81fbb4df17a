"""What a cell's source says about the names it needs before it runs.

Almost every use of a name goes through the lazy builtins. The exceptions are
deletions, and code which looks names up in the dictionaries of a frame: data
frame queries, SQL over frames, formulas, IPython's magics. For those, names in
strings are loaded first; where the string is not known, everything is.
"""

from __future__ import annotations

import ast
import re
import types

_WORD = re.compile(r"[^\W\d]\w*")

_READS_STRINGS = frozenset(
    {"query", "eval", "evaluate", "sql", "execute", "executemany", "from_query", "run_line_magic",
     "run_cell_magic", "system", "getoutput", "getoutput_assign", "getsystem", "var_expand", "ols",
     "exec", "timeit", "repeat", "run_cell", "ex", "ev", "magic", "sx", "dmatrix", "dmatrices",
     "query_df", "view", "table", "from_df", "values", "glm", "logit", "probit", "mixedlm", "gls",
     "wls", "rlm", "poisson", "lme", "lmer", "SQLContext", "from_formula", "feols"}
)  # fmt: skip
"""Functions whose string arguments may name variables of the calling frame."""

_READS_UNKNOWN = _READS_STRINGS - {"values", "view", "table", "execute", "executemany", "system",
                                   "exec", "timeit", "repeat", "getoutput"}  # fmt: skip
"""Of these, functions which may name any variable when the string is computed."""

_READS_ALL = frozenset({"f_globals", "f_locals", "currentframe", "_getframe", "user_ns",
                        "user_global_ns", "stack", "__globals__", "getclosurevars"})  # fmt: skip

_MAGICS_OVER_ALL = frozenset(
    {"who", "whos", "who_ls", "reset", "reset_selective", "psearch", "xdel", "store", "run",
     "debug", "prun", "lprun", "mprun", "save", "macro", "autoreload", "load_ext", "logstart"}
)  # fmt: skip


class Needs:
    """Names to load before a piece of code runs."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.everything = False
        self.reads: set[str] = set()
        """Names which the code itself looks up; they need no loading before."""
        self.imports: set[str] = set()
        """Dotted modules which a plain ``import a.b`` makes reachable through ``a``."""
        self.assigned: set[str] = set()
        """Dotted names assigned to, as in ``pd.DataFrame.head2 = ...``."""
        self.modules: dict[str, str] = {}
        """Modules by the names which plain imports bind."""


def needs_of_source(source: str) -> Needs:
    """Look at a cell's plain Python source; a syntax error needs nothing."""
    found = Needs()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    try:
        nodes = list(ast.walk(tree))
    except RecursionError:
        found.everything = True
        return found
    for node in nodes:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Del):
                found.names.add(node.id)
            elif isinstance(node.ctx, ast.Load):
                found.reads.add(node.id)
        elif isinstance(node, ast.Import):
            found.imports.update(a.name for a in node.names if "." in a.name and not a.asname)
            found.modules.update((a.asname, a.name) for a in node.names if a.asname)
        elif isinstance(node, ast.Attribute):
            found.everything = found.everything or node.attr in _READS_ALL
            if isinstance(node.ctx, ast.Store):
                found.assigned.add(_dotted(node))
        elif isinstance(node, ast.Constant):
            # A decorator or a wrapper may hide the function which reads the string.
            if isinstance(node.value, str) and ("@" in node.value or "~" in node.value):
                found.names.update(_WORD.findall(node.value))
        elif isinstance(node, ast.Call):
            _call(node, found)
    return found


def _dotted(node: ast.expr) -> str:
    """Write a chain of attributes as text; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _call(node: ast.Call, found: Needs) -> None:
    function = node.func
    name = ""
    if isinstance(function, ast.Name):
        name = function.id
    elif isinstance(function, ast.Attribute):
        name = function.attr
    if name in _READS_ALL:
        found.everything = True
    if name == "setattr" and len(node.args) == 3 and isinstance(node.args[1], ast.Constant):
        owner = node.args[0]
        path = owner.id if isinstance(owner, ast.Name) else _dotted(owner)
        found.assigned.add(f"{path}.{node.args[1].value!s}")
    if name not in _READS_STRINGS:
        return
    if name == "run_line_magic" and [getattr(a, "value", "") for a in node.args[:1]] == ["sandbox"]:
        return  # what it names is to be made again, not loaded
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    for position, argument in enumerate(arguments):
        if isinstance(argument, ast.Constant):
            if isinstance(argument.value, str):
                words = _WORD.findall(argument.value)
                found.names.update(words)
                if name.startswith("run_") and position == 0 and argument.value in _MAGICS_OVER_ALL:
                    found.everything = True
        elif name in _READS_UNKNOWN and not isinstance(argument, ast.Lambda | ast.Dict | ast.List):
            found.everything = True


def needs_of_code(code: types.CodeType) -> Needs:
    """Look at a function from an earlier cell when it is loaded."""
    import dis

    found = Needs()
    waiting = [code]
    while waiting:
        current = waiting.pop()
        waiting += [item for item in current.co_consts if isinstance(item, types.CodeType)]
        names = set(current.co_names)
        if names & _READS_ALL:
            found.everything = True
        if names & _READS_STRINGS:
            for item in current.co_consts:
                if isinstance(item, str):
                    found.names.update(_WORD.findall(item))
            if names & _READS_UNKNOWN and not any(
                isinstance(c, str) for c in current.co_consts[1:]
            ):
                found.everything = True
        for instruction in dis.get_instructions(current):
            if instruction.opname in ("DELETE_GLOBAL", "DELETE_NAME"):
                found.names.add(str(instruction.argval))
    return found

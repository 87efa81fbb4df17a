"""Digests of values by content, made by a notebook's last cell in either kind of run.

Equal digests of all variables mean equal values *and* equal sharing: the second time a
mutable object is met, in whichever variable, its place of first meeting is digested.
"""

import enum
import functools
import hashlib
import inspect
import itertools
import json
import sys
import types

HIDDEN = {"In", "Out", "get_ipython", "exit", "quit", "open"}


def digest_all(namespace):
    names = sorted(n for n in namespace if not n.startswith("_") and n not in HIDDEN)
    look = Look()
    found = {}
    for name in names:
        try:
            text = look.at(namespace[name])
        except Exception as error:
            text = f"not looked at: {type(error).__name__}: {error}"
        found[name] = (
            text if len(text) < 300 else text[:200] + hashlib.sha1(text.encode()).hexdigest()
        )
    return json.dumps(found)


def label(kind):
    return f"{kind.__module__}.{kind.__qualname__}"


class Look:
    def __init__(self):
        self.met = {}
        self.inside = set()
        self.memory = {}
        self.alive = []

    def at(self, value):
        kind = type(value)
        if value is None or kind in (bool, int, float, complex, str, bytes, range, type(...)):
            return repr(value)
        if issubclass(kind, enum.Enum):
            return f"{label(kind)}.{value.name}"
        if kind is types.ModuleType:
            return f"module {value.__name__}"
        if id(value) in self.met:
            return f"<{self.met[id(value)]}>"
        if is_shared_noticeably(value):
            self.met[id(value)] = len(self.met)
        self.alive.append(value)
        if len(self.alive) > 200_000:
            return "much"
        if id(value) in self.inside:
            return "(around)"
        self.inside.add(id(value))
        try:
            return f"{label(kind)}{self.told(value)}"
        finally:
            self.inside.discard(id(value))

    def told(self, value):
        for tell in (special, containers, functions, state):
            text = tell(self, value)
            if text is not None:
                return text
        return ""

    def all(self, values):
        return "[" + ", ".join(self.at(v) for v in values) + "]"

    def pairs(self, mapping):
        kept = [
            (k, v)
            for k, v in mapping
            if not str(k).rstrip("_").endswith("_time") and str(k) != "_cache"
        ]
        return "{" + ", ".join(f"{self.at(k)}: {self.at(v)}" for k, v in kept) + "}"


def is_shared_noticeably(value):
    kind = type(value)
    return isinstance(value, (list, dict, set, bytearray)) or kind.__module__ == "__main__"


def special(look, value):
    kind = type(value)
    top = str(kind.__module__).partition(".")[0]
    teller = SPECIAL.get(kind.__name__) if top in LIBRARIES else None
    if teller is None:
        for base in kind.__mro__:
            if str(base.__module__).partition(".")[0] in LIBRARIES and base.__name__ in SPECIAL:
                teller = SPECIAL[base.__name__]
                break
    return teller(look, value) if teller else None


LIBRARIES = {
    "numpy", "pandas", "polars", "pyarrow", "scipy", "matplotlib", "networkx", "sympy", "sqlite3",
    "duckdb", "sqlalchemy", "decimal", "fractions", "datetime", "zoneinfo", "re", "threading",
    "_thread", "random", "collections", "itertools", "builtins", "string", "asyncio", "_io",
    "_random", "_contextvars", "contextvars", "functools", "_hashlib", "weakref", "plotly", "logging", "sklearn",
}  # fmt: skip


def array(look, value):
    if value.dtype.hasobject:
        return f"{value.dtype}{value.shape}{look.all(value.ravel().tolist())}"
    body = hashlib.sha1(value.tobytes()).hexdigest()
    root = value
    while type(root.base) is type(value):
        root = root.base
    start = value.__array_interface__["data"][0]
    number, first = look.memory.setdefault(
        root.__array_interface__["data"][0], (len(look.memory), start)
    )
    where = "" if first == start else f" at {start - first} from array {number}"
    return f"{value.dtype}{value.shape}{body}{where}"


def frame(look, value):
    kinds = [str(d) for d in (value.dtypes if value.ndim == 2 else [value.dtype])]
    return f"{kinds}{value.index.names}{value.to_csv()}{type(value.index).__name__}"


def figure(_look, value):
    import io

    if not hasattr(value, "savefig"):
        # plotly's: its template is made anew, with its keys in another order
        return json.dumps(json.loads(value.to_json()), sort_keys=True)
    buffer = io.BytesIO()
    value.savefig(buffer, format="raw", dpi=50)
    return hashlib.sha1(buffer.getvalue()).hexdigest()


def axes(look, value):
    lines = [look.at(line) for line in value.lines]
    return f"{value.get_title()}{value.get_xlim()}{value.get_ylim()}{lines}{len(value.patches)}"


def line(look, value):
    return f"{value.get_label()}{value.get_color()}{look.at(value.get_xydata())}"


def graph(look, value):
    return f"{look.at(dict(value.graph))}{sorted(map(str, value.nodes(data=True)))}{sorted(map(str, value.edges(data=True)))}"


SPECIAL = {
    "ndarray": array,
    "MaskedArray": lambda look, v: look.at(v.filled()) + look.at(v.mask),
    "generic": lambda _, v: repr(v),
    "DataFrame": lambda look, v: frame(look, v) if hasattr(v, "to_csv") else f"{v.schema}{v.write_json()}",
    "Series": lambda look, v: frame(look, v) if hasattr(v, "to_csv") else f"{v.dtype}{v.to_list()}",
    "LazyFrame": lambda _, v: v.collect().write_json(),
    "Expr": lambda _, v: str(v),
    "Index": lambda _, v: f"{v.dtype}{v.tolist()}{v.names}",
    "Figure": figure,
    "_AxesBase": axes,
    "Line2D": line,
    "Artist": lambda _, v: str(v.get_label()),
    "Graph": graph,
    "EdgeViewABC": lambda _, v: repr(v),  # networkx itself saves a view without its graph
    "Basic": lambda _, v: __import__("sympy").srepr(v),
    "MatrixBase": lambda _, v: __import__("sympy").srepr(v),
    "Table": lambda _, v: str(v.to_pydict()) if hasattr(v, "to_pydict") else str(v),
    "ChunkedArray": lambda _, v: str(v.to_pylist()),
    "Connection": lambda _, v: str(list(v.iterdump())) if hasattr(v, "iterdump") else "open",
    "DuckDBPyConnection": lambda _, v: str(v.sql("show tables").fetchall()),
    "Row": lambda _, v: str(dict(v)) if hasattr(v, "keys") else str(tuple(v)),
    "MetaData": lambda look, v: look.all(sorted(v.tables)),
    "Engine": lambda _, v: str(v.url),
    "ClauseElement": lambda _, v: str(v),
    "Context": lambda _, v: repr(v),
    "Random": lambda look, v: look.at(v.getstate()),
    # What the global one holds before it is seeded depends on the step, and not on the process.
    "RandomState": lambda look, v: (
        "" if v is sys.modules["numpy.random"].mtrand._rand else look.at(v.get_state())
    ),
    "ABCPolyBase": lambda look, v: look.all([v.coef, v.domain, v.window, v.symbol]),
    "CallbackRegistry": lambda _, v: "",
    "BaseFigure": lambda _, v: v.to_json(),
    "BasePlotlyType": lambda look, v: look.at(v.to_plotly_json()),
    "Generator": lambda look, v: look.at(v.bit_generator.state),
    "TextIOWrapper": lambda _, v: f"{v.name}{v.mode}{v.closed}{v.closed or v.tell()}",
    "StringIO": lambda _, v: f"{v.getvalue()!r}{v.tell()}",
    "Thread": lambda _, v: f"{v.is_alive()}",
    "Event": lambda _, v: f"{v.is_set()}" if hasattr(v, "is_set") else "",
    "RLock": lambda _, v: "",
    "Pattern": lambda _, v: repr(v),
    "Match": lambda _, v: f"{v.re}{v.string}{v.regs}",
    "ContextVar": lambda look, v: f"{v.name}{look.at(v.get())}",
    "Token": lambda _, v: f"{v.var.name}",
    "csr_matrix": lambda look, v: look.all([v.data, v.indices, v.indptr]),
    "lil_matrix": lambda look, v: look.at(v.toarray()),
    "cKDTree": lambda look, v: look.at(v.data),
    "BinaryTree": lambda look, v: look.at(v.get_arrays()[0]),
    "Tree": lambda look, v: look.all([v.feature, v.threshold, v.value]),
    "Logger": lambda _, v: f"{v.name}{v.level}",
    "datetime": lambda _, v: repr(v),
    "date": lambda _, v: repr(v),
    "timedelta": lambda _, v: repr(v),
    "Timestamp": lambda _, v: repr(v),
    "Decimal": lambda _, v: repr(v),
    "Fraction": lambda _, v: repr(v),
    "ZoneInfo": lambda _, v: repr(v),
    "WeakKeyDictionary": lambda look, v: look.pairs(v.items()),
    "BaseOffset": lambda _, v: repr(v),
    "Period": lambda _, v: repr(v),
}  # fmt: skip


def containers(look, value):
    if isinstance(value, dict):
        more = look.at(getattr(value, "default_factory", None))
        return look.pairs(value.items()) + more
    if isinstance(value, (set, frozenset)):
        return str(sorted(look.at(v) for v in value))
    if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        more = look.at(vars(value)) if hasattr(value, "__dict__") and vars(value) else ""
        return look.all(list(value)) + more + str(getattr(value, "maxlen", ""))
    return None


def functions(look, value):
    if isinstance(value, types.FunctionType):
        cells = [cell_content(cell) for cell in value.__closure__ or ()]
        code = value.__code__
        facts = [value.__name__, value.__doc__, value.__defaults__, value.__kwdefaults__]
        own = {k: v for k, v in vars(value).items() if k != "__wrapped__"}
        return f"{look.all([*facts, cells, own])}{hashlib.sha1(code.co_code).hexdigest()}"
    if isinstance(value, type):
        if value.__module__ != "__main__":
            return f" {label(value)}"
        inside = sorted((k, v) for k, v in vars(value).items() if not hidden(k, v))
        return (
            f" {value.__qualname__} {[b.__qualname__ for b in value.__mro__]} {look.pairs(inside)}"
        )
    if isinstance(value, types.MethodType):
        return f"{value.__name__}{look.at(value.__self__)}"
    if isinstance(value, types.BuiltinFunctionType):
        return f" {value.__name__}"
    if isinstance(value, (types.GeneratorType, types.AsyncGeneratorType)):
        if isinstance(value, types.AsyncGeneratorType):
            return value.__name__
        return f"{value.__name__}{inspect.getgeneratorstate(value)}{look.at(inspect.getgeneratorlocals(value))}"
    if isinstance(value, functools.partial):
        return look.all([value.func, value.args, value.keywords])
    if type(value).__name__ == "_lru_cache_wrapper":
        return f"{value.__name__}{value.cache_info()}"
    if isinstance(value, (property, classmethod, staticmethod)):
        return ""
    if isinstance(value, BaseException):
        return look.all([value.args, value.__cause__])
    if hasattr(value, "__next__") and not hasattr(value, "__dict__"):
        return iterator(look, value)
    return None


def iterator(look, value):
    """What it still gives, taken from it at the very end; endless ones give some of it."""
    return look.all(list(itertools.islice(value, 20)))


def cell_content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return "empty"


def hidden(name, value):
    return name in ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__") or (
        isinstance(value, (types.GetSetDescriptorType, types.MemberDescriptorType))
        or name.startswith("_abc_")
        or name in ("__static_attributes__", "__annotate_func__", "__annotations_cache__")
    )


def state(look, value):
    if isinstance(value, types.SimpleNamespace) or hasattr(value, "__dict__"):
        held = {k: v for k, v in sorted(vars(value).items(), key=str) if not callable(v)}
        slots = [
            s for b in type(value).__mro__ for s in getattr(b, "__slots__", ()) if s[:2] != "__"
        ]
        return look.pairs(held.items()) + look.all([getattr(value, s, None) for s in slots])
    slots = [s for b in type(value).__mro__ for s in getattr(b, "__slots__", ())]
    if slots and type(value).__module__ == "__main__":
        return look.all([getattr(value, s, None) for s in slots])
    return ""

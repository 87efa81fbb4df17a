"""Random programs, cut into cells at random, end as they do in one process."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .harness import Notebook

NAMES = "abcdef"

PRELUDE = """
class Node:
    def __init__(self, v): self.v = v
    def set(self, v): self.v = v; return self
class Shared:
    pool = []
def put(target, value): target.append(value) if isinstance(target, list) else None
def make_counter(box):
    n = 0
    def count():
        nonlocal n
        n += 1
        box.append(n)
        return n
    return count
"""

DIGEST = """
import json as _json, types as _types
def _digest(value, seen):
    if id(value) in seen:
        return ['ref', seen[id(value)]]
    if not isinstance(value, (int, str, type(None))):
        seen[id(value)] = len(seen)
    if isinstance(value, list):
        return ['list'] + [_digest(v, seen) for v in value]
    if isinstance(value, dict):
        return ['dict'] + [[str(k), _digest(v, seen)] for k, v in value.items()]
    if isinstance(value, tuple):
        return ['tuple'] + [_digest(v, seen) for v in value]
    if isinstance(value, type):
        return ['class', value.__name__, _digest(value.__dict__.get('pool'), seen)]
    if isinstance(value, _types.FunctionType):
        return ['function', value.__name__, [_digest(c.cell_contents, seen) for c in value.__closure__ or ()]]
    if hasattr(value, '__dict__'):
        return [type(value).__name__, _digest(type(value), seen), _digest(vars(value), seen)]
    return repr(value)
_seen = {}
_state = {_n: _digest(globals()[_n], _seen) for _n in 'abcdef' if _n in globals()}
_state['pool'] = _digest(Shared.pool, _seen)
print(_json.dumps(_state))
"""

name = st.sampled_from(NAMES)
leaf = st.sampled_from(
    ["1", "'text'", "None", "[]", "{}", "Node([])", "Shared.pool", "Shared", "Node"]
)
value = st.one_of(
    leaf,
    name.map(lambda n: f"{n}"),
    name.map(lambda n: f"[{n}]"),
    st.tuples(name, name).map(lambda p: f"[{p[0]}, ({p[1]},)]"),
    st.tuples(name, name).map(lambda p: f"{{'x': {p[0]}, 'y': {p[1]}}}"),
    name.map(lambda n: f"Node({n})"),
    name.map(lambda n: f"make_counter({n} if isinstance({n}, list) else Shared.pool)"),
)
statement = st.one_of(
    st.tuples(name, value).map(lambda p: f"{p[0]} = {p[1]}"),
    st.tuples(name, value).map(lambda p: f"put({p[0]}, {p[1]})"),
    st.tuples(name, value).map(lambda p: f"{p[0]}['k'] = {p[1]}"),
    st.tuples(name, value).map(lambda p: f"{p[0]}.set({p[1]})"),
    st.tuples(name, value).map(lambda p: f"{p[0]}.q = {p[1]}"),
    st.tuples(name, name).map(lambda p: f"{p[0]} = {p[1]}[0]"),
    st.tuples(name, name).map(lambda p: f"{p[0]} = {p[1]}.v"),
    st.tuples(name, name).map(lambda p: f"{p[0]}, {p[1]} = {p[1]}, {p[0]}"),
    name.map(lambda n: f"del {n}"),
    name.map(lambda n: f"{n}()"),
    name.map(lambda n: f"{n}.clear()"),
    name.map(lambda n: f"Shared.pool.append({n})"),
    name.map(lambda n: f"Shared.pool = {n} if isinstance({n}, list) else []"),
    name.map(lambda n: f"def {n}(d=[]): d.append({n!r}); return d"),
    name.map(lambda n: f"globals()['{n}'] = [globals().get('{n}')]"),
    st.just("class Node(Node): pass"),
)
program = st.lists(statement, min_size=3, max_size=14)


def as_cells(statements, cuts):
    """Cut a program; a statement which fails must not end its cell differently here and there."""
    guarded = [
        f"try:\n    {line}\nexcept (NameError, TypeError, AttributeError, KeyError, IndexError): pass"
        for line in statements
    ]
    cells, current = [], []
    for line, cut in zip(guarded, cuts, strict=True):
        current.append(line)
        if cut:
            cells.append("\n".join(current))
            current = []
    return cells + (["\n".join(current)] if current else [])


def final_state(notebook, statements, cuts):
    cells = [PRELUDE, *as_cells(statements, cuts)]
    plain = notebook.home.parent / "plain"
    plain.mkdir(exist_ok=True)
    expected = notebook.engine.run({"cells": ["\n".join([*cells, DIGEST])], "home": str(plain)})
    for cell in cells:
        outcome = notebook.run(cell)
        assert outcome["ename"] is None, outcome["stdout"]
        assert "error" not in outcome["report"], outcome["report"]
    got = notebook.run(DIGEST)
    assert got["ename"] is None, got["stdout"]
    return json.loads(got["stdout"].splitlines()[-1]), json.loads(
        expected[0]["stdout"].splitlines()[-1]
    )


def check(engines, tmp_path_factory, statements, cuts):
    notebook = Notebook(engines("bare"), tmp_path_factory.mktemp("program"))
    got, expected = final_state(notebook, statements, cuts)
    assert got == expected


cut_program = program.flatmap(
    lambda lines: st.tuples(
        st.just(lines), st.lists(st.booleans(), min_size=len(lines), max_size=len(lines))
    )
)
options = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


@settings(max_examples=40, derandomize=True, **options)
@given(cut_program)
def test_random_programs(engines, tmp_path_factory, sample):
    check(engines, tmp_path_factory, *sample)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@settings(max_examples=300, **options)
@given(cut_program)
def test_many_random_programs(engines, tmp_path_factory, sample):
    check(engines, tmp_path_factory, *sample)

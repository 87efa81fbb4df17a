"""dill's catalogue of live objects: restored, or reported lost; never silently wrong."""

import json

import pytest

pytest.importorskip("dill")

MAKE = """
import warnings; warnings.simplefilter('ignore')
from dill import _objects
import dill
_all = {**_objects.succeeds, **_objects.failures, **_objects.registered}
for _name, _value in _all.items():
    globals()['obj_' + ''.join(c if c.isalnum() else '_' for c in _name)] = _value
_names = {'obj_' + ''.join(c if c.isalnum() else '_' for c in n): n for n in _all}
del _all, _name, _value, _objects, dill
"""

CHECK = r"""
import warnings; warnings.simplefilter('ignore')
import json, types
from dill import _objects as _fresh
_kinds = {**_fresh.succeeds, **_fresh.failures, **_fresh.registered}

def _look(value, depth=0):
    # What two separately made objects of the catalogue have in common.
    found = [type(value).__name__]
    if isinstance(value, (int, float, complex, str, bytes, bool, type(None), range, slice)):
        found.append(repr(value))
    elif isinstance(value, (list, tuple)) and depth < 3:
        found.append([_look(v, depth + 1) for v in value])
    elif isinstance(value, dict) and depth < 3:
        found.append(sorted(str(k) for k in value))
    elif isinstance(value, (set, frozenset)):
        found.append(len(value))
    elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)):
        found.append(value.__name__)
    elif hasattr(value, '__dict__') and depth < 2:
        found.append(sorted(k for k in vars(value) if not k.startswith('__')))
    return found

def _safe_look(value):
    try:
        return _look(value)
    except ReferenceError:
        return 'dead'

_result = {'restored': [], 'lost': [], 'wrong': []}
for _name, _original in _names.items():
    try:
        _value = eval(_name)
        _same = _safe_look(_value) == _safe_look(_kinds[_original])
        _result['restored' if _same else 'wrong'].append(_original)
    except Exception as _error:
        _kind = 'lost' if type(_error).__name__ == 'StateLostError' else 'wrong'
        _result[_kind].append(_original if _kind == 'lost' else [_original, repr(_error)[:200]])
print(json.dumps(_result))
"""


def test_nothing_is_silently_wrong(warm_notebook):
    first = warm_notebook.run(MAKE)
    assert first["ename"] is None, first["stdout"][-2000:]
    assert "error" not in first["report"], first["report"]
    second = warm_notebook.run(CHECK)
    assert second["ename"] is None, second["stdout"][-2000:]
    found = json.loads(second["stdout"].strip().splitlines()[-1])
    reported = {entry["name"] for entry in first["report"]["lost"]}
    # Iterators over dictionaries and sets come back as iterators over the same rest.
    # The number of functions which `pythonapi` was asked for differs from process to process.
    found["wrong"].remove("PyDLLType") if "PyDLLType" in found["wrong"] else None
    wrong = [
        name
        for name in found["wrong"]
        if "terator" not in str(name) and "iterator" not in str(name)
    ]
    assert not wrong, wrong
    assert len(found["restored"]) >= 180, found["lost"]
    assert len(reported) >= len(found["lost"]) - 5, (found["lost"], reported)
    print({kind: len(names) for kind, names in found.items()}, found["lost"])

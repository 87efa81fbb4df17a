"""The object matrix as a table: ``python -m tests.runner.state.matrix [--quick]``.

Every object is made in one cell, changed in a second and looked at in a third, each a process of
its own. *Restored*: it is what one process has. *Reported*: the cell that made it said that it
cannot be kept, and its use raises. *Wrong*: anything else; there must be none.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from . import test_dill_catalogue as dill
from .catalogue import CHANGE, GROUPS, MAKE
from .harness import Engine, Notebook
from .test_objects import LIBRARIES, OBJECTS, outcome_of

DIGEST = (Path(__file__).parent / "digest.py").read_text()
LOOK = f"""
import types as _types, json as _json, warnings
warnings.simplefilter('ignore')
_digest = _types.ModuleType('digest')
exec({DIGEST!r}, vars(_digest))
_found = {{}}
for _name in [n for n in dir() if n.startswith('x_')]:
    try:
        _found[_name] = _digest.Look().at(eval(_name))
    except Exception as _error:
        _found[_name] = 'not looked at: ' + repr(_error)[:200]
print('DIGESTS ' + _json.dumps(_found))
"""

Row = dict[str, list[str]]


def new_row() -> Row:
    return {"restored": [], "reported": [], "wrong": []}


def notebook_of(engine: Engine) -> Notebook:
    return Notebook(engine, tempfile.mkdtemp(prefix="matrix-"))


def group(engine: Engine, name: str) -> Row:
    """One library: every variable's digest as in one process, or reported."""
    _, setup, change = GROUPS[name]
    cells = [MAKE.format(setup=setup), CHANGE.format(change=change), LOOK]
    notebook = notebook_of(engine)
    plain = notebook.home.parent / "plain"
    plain.mkdir()
    expected = engine.run({"cells": cells, "home": str(plain)})
    control = notebook.home.parent / "control"
    control.mkdir()
    again = engine.run({"cells": cells, "home": str(control)})
    got = notebook.run_all(cells)
    lost = {entry["name"] for outcome in got for entry in outcome["report"]["lost"]}
    wanted, repeated, found = (digests(runs[-1]["stdout"]) for runs in (expected, again, got))
    row = new_row()
    for variable, value in wanted.items():
        assert not value.startswith("not looked at"), (variable, value)
        if variable in lost:
            kind = "reported"
        elif found.get(variable) == value:
            kind = "restored"
        elif repeated.get(variable) != value:
            continue  # it differs between two runs in one process, too
        else:
            kind = "wrong"
        row[kind].append(variable[2:])
    return row


def digests(text: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(text.partition("DIGESTS ")[2].splitlines()[0])
    return found


def own(engine: Engine, rows: list[tuple[str, str, str]]) -> Row:
    row = new_row()
    for name, make, check in rows:
        try:
            found = outcome_of(notebook_of(engine), make, check)
        except AssertionError:
            found = "wrong"
        row["reported" if found == "lost" else found].append(name)
    return row


def dills(engine: Engine) -> Row:
    notebook = notebook_of(engine)
    notebook.run(dill.MAKE)
    second = notebook.run(dill.CHECK)
    found = json.loads(second["stdout"].strip().splitlines()[-1])
    wrong = [
        name
        for name in map(str, found["wrong"])
        if name != "PyDLLType" and "iterator" not in name.lower()
    ]
    # Iterators over dictionaries and sets come back as iterators over the same rest.
    same = [str(name) for name in found["wrong"] if str(name) not in wrong]
    return {"restored": found["restored"] + same, "reported": found["lost"], "wrong": wrong}


def table(*, quick: bool = False) -> dict[str, Row]:
    """Run everything; give the rows by their titles."""
    warm, bare = Engine("zygote"), Engine("bare")
    try:
        rows = {name: group(warm, name) for name in GROUPS}
        if not quick:
            rows["Python's own"] = own(bare, OBJECTS)
            rows["libraries, by hand"] = own(warm, LIBRARIES)
            rows["dill's catalogue"] = dills(warm)
    finally:
        warm.close()
        bare.close()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the libraries alone")
    rows = table(quick=parser.parse_args().quick)
    print(f"{'':24}{'restored':>10}{'reported':>10}{'wrong':>8}")
    for name, row in rows.items():
        print(
            f"{name:24}"
            + "".join(f"{len(row[k]):>{w}}" for k, w in zip(row, (10, 10, 8), strict=True))
        )
    totals = [sum(len(row[kind]) for row in rows.values()) for kind in new_row()]
    print(f"{'all':24}{totals[0]:>10}{totals[1]:>10}{totals[2]:>8}")
    for name, row in rows.items():
        for kind in ("reported", "wrong"):
            if row[kind]:
                print(f"\n{name}, {kind}: {', '.join(row[kind])}")
    return 1 if totals[2] else 0


if __name__ == "__main__":
    raise SystemExit(main())

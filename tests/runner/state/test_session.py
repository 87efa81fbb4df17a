"""What a cell costs, what it reports, what files it writes."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from .harness import Notebook


def files_of(notebook):
    return {
        str(path.relative_to(notebook.root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(notebook.root.rglob("*"))
        if path.is_file() and path.name != "HEAD"
    }


def test_files_are_only_ever_added(warm_notebook):
    before = {}
    for cell in (
        "import numpy as np; a = np.zeros(300_000); l = [1]; def_ = {'l': l}",
        "a[5] = 1",
        "l.append(2)",
        "del a",
        "x = 1",
    ):
        warm_notebook.run(cell)
        after = files_of(warm_notebook)
        assert before.items() <= after.items()
        before = after


def test_equal_cells_write_equal_states(engines, tmp_path):
    cells = [
        "import numpy as np, random; r = random.random(); n = np.random.rand(3)",
        "def f(): return r",
        "d = {'f': f, 's': {1, 2}}",
    ]
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        notebook = Notebook(engines("zygote"), tmp_path / name)
        notebook.home = tmp_path / "home"
        notebook.home.mkdir(exist_ok=True)
        notebook.run_all(cells)
        found.append(files_of(notebook))
    assert found[0] == found[1]


def test_untouched_variables_cost_nothing(warm_notebook):
    warm_notebook.run(
        "import pandas as pd, numpy as np; df = pd.DataFrame(np.zeros((400_000, 4))); x = 0"
    )
    report = warm_notebook.run("x += 1")["report"]
    assert report["loaded"] == ["x"]
    assert report["bytes_written"] < 4096
    report = warm_notebook.run("s = float(df[0].sum())")["report"]
    assert report["bytes_written"] < 8192
    assert report["unchanged"] >= 1


def test_one_element_writes_a_few_pages(warm_notebook):
    warm_notebook.run("import pandas as pd, numpy as np; df = pd.DataFrame(np.zeros((400_000, 4)))")
    report = warm_notebook.run("df.iloc[5, 3] = 42")["report"]
    assert 0 < report["bytes_written"] < 256 << 10
    report = warm_notebook.run("df.iloc[300_000, 1] = 43")["report"]
    assert 0 < report["bytes_written"] < 256 << 10
    outcome = warm_notebook.run("print(df.iloc[5, 3], df.iloc[300_000, 1], df.to_numpy().sum())")
    assert outcome["stdout"] == "42.0 43.0 85.0\n"
    assert outcome["report"]["bytes_written"] < 8192


def test_many_writes_are_folded_into_a_new_base(warm_notebook):
    warm_notebook.run("import numpy as np; a = np.zeros(1_000_000)")
    for number in range(3):
        warm_notebook.run(f"a[{number}::4_000] = {number + 1}")
    assert (
        warm_notebook.run("print(a.sum(), a[4_000], a[4_001], a[4_002])")["stdout"]
        == "1500.0 1.0 2.0 3.0\n"
    )


def test_changes_are_found_where_pagemap_is_hidden(warm_notebook):
    warm_notebook.run("import numpy as np; a = np.arange(400_000.)")
    hide = (
        "import dagger_kernel_runner.state.memory as m\n"
        "m.Memory._pagemap_works = lambda self: False\n"
    )
    report = warm_notebook.run(hide + "a[7] = -1")["report"]
    assert 0 < report["bytes_written"] < 256 << 10
    assert warm_notebook.run(hide + "print(a[7], a[8])")["stdout"] == "-1.0 8.0\n"
    assert warm_notebook.run(hide + "print(a[7])")["report"]["bytes_written"] < 8192


def test_copies_made_for_saving_are_not_taken_for_one_another(warm_notebook):
    """Arrays with swapped axes are copied to be saved, one copy where the one before was."""
    images = "np.full((20, 30, 20), float({0})).transpose(1, 0, 2) + 0"
    warm_notebook.run(
        "import numpy as np\n"
        + "\n".join(f"x{n} = {images.format(n)}; pair{n} = [x{n}]" for n in range(40))
    )
    outcome = warm_notebook.run(
        "\n".join(f"assert (x{n} == {n}).all() and pair{n}[0] is x{n}, {n}" for n in range(40))
    )
    assert outcome["ename"] is None, outcome["evalue"]


def test_report_lists_what_happened(notebook):
    report = notebook.run("a = 1; b = [a]; import socket; s = socket.socket()")["report"]
    assert {"a", "b", "s"} <= set(report["saved"])
    assert [(e["name"], e["type"], e["cell"], e["new"]) for e in report["lost"]] == [
        ("s", "socket.socket", 1, True)
    ]
    report = notebook.run("b.append(2); del a")["report"]
    assert "b" in report["saved"]
    assert report["deleted"] == ["a"]
    assert [(e["name"], e["new"]) for e in report["lost"]] == [("s", False)]
    outcome = notebook.run("s.send(b'x')")
    assert outcome["ename"] == "StateLostError"
    assert "socket.socket" in outcome["evalue"]
    assert "run cell [1] again" in outcome["evalue"]
    assert "s.send(b'x')" in outcome["stdout"]
    assert "loader.py" not in outcome["stdout"]
    assert notebook.run("del s")["report"]["lost"] == []
    assert notebook.run("s")["ename"] == "NameError"


def test_functions_made_for_a_connection_are_told_as_lost(notebook):
    notebook.run("import sqlite3; con = sqlite3.connect('a.db'); other = sqlite3.connect('a.db')")
    report = notebook.run(
        "con.create_function('dbl', 1, lambda x: 2 * x); con.create_collation('rv', lambda a, b: 0)"
    )["report"]
    assert [entry["name"] for entry in report["lost"]] == ["con"]
    outcome = notebook.run("con.execute('select dbl(2)')")
    assert "functions and collations made for it (dbl, rv)" in outcome["evalue"]
    assert notebook.run("print(other.execute('select 1').fetchall())")["stdout"] == "[(1,)]\n"


def test_a_reason_that_is_a_sentence_ends_once(notebook):
    notebook.run("class A:\n    def __reduce__(self): ...\nimport io\n"
                 "class B(io.RawIOBase):\n    def __reduce_ex__(self, p): raise ValueError('No.')\nb = B()")  # fmt: skip
    assert ".." not in notebook.run("b.x")["evalue"]


def test_a_lost_object_inside_a_list_spoils_nothing_else(notebook):
    first = notebook.run("import socket; l = [1, socket.socket(), {'k': 2}]")
    assert [e["name"] for e in first["report"]["lost"]] == ["l"]
    outcome = notebook.run("print(l[0], l[2]['k'], len(l), l[1] in l); l[0] = 5")
    assert outcome["stdout"] == "1 2 3 True\n"
    outcome = notebook.run("print(l[0]); l[1].send(b'')")
    assert outcome["stdout"].startswith("5\n")
    assert outcome["ename"] == "StateLostError"


def test_names_are_known_without_being_loaded(notebook):
    notebook.run("alpha = [1]; beta = 2; _hidden = 3\ndef gamma(): ...")
    outcome = notebook.run("print('alpha' in dir(), 'gamma' in dir())")
    assert outcome["stdout"] == "True True\n"
    assert outcome["names"] == ["alpha", "beta", "gamma"]
    assert outcome["report"]["loaded"] == []
    outcome = notebook.run("%who")
    assert "alpha" in outcome["stdout"]
    assert "beta" in outcome["stdout"]


def test_state_is_saved_however_the_cell_ends(notebook):
    notebook.run("a = 1\nraise KeyboardInterrupt")
    notebook.run("b = 2\nraise SystemExit(3)")
    notebook.run("c = 3\nimport sys; sys.exit()")
    notebook.run("d = 4\nassert False")
    assert notebook.run("print(a, b, c, d)")["stdout"] == "1 2 3 4\n"


def test_a_blob_which_cannot_be_read_is_kept_and_reported(notebook):
    notebook.run(
        "import sys, types\n"
        "open('lib.py', 'w').write('')\n"
        "import json, decimal\n"
        "good = [1]; bad = decimal.Decimal(5); alias = [bad]"
    )
    broken = "import decimal; del vars(decimal)['Decimal']\n"
    outcome = notebook.run(broken + "print(good); bad")
    assert outcome["stdout"].startswith("[1]\n")
    assert outcome["ename"] == "StateLostError"
    assert "bad" in {e["name"] for e in outcome["report"]["lost"]}
    outcome = notebook.run("print(bad, good)")
    assert outcome["stdout"] == "5 [1]\n"
    assert outcome["report"]["lost"] == []


def test_unseeded_random_streams_depend_on_the_step_only(engines, tmp_path):
    outputs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        notebook = Notebook(engines("zygote"), tmp_path / name)
        cells = [
            "import random, numpy as np\nprint(random.random(), np.random.rand())",
            "print(random.random(), np.random.rand())",
        ]
        outputs.append([o["stdout"] for o in notebook.run_all(cells)])
    assert outputs[0] == outputs[1]
    assert outputs[0][0] != outputs[0][1]


def test_magics_that_clear_the_namespace(notebook):
    notebook.run("a = 1; b = [2]; keep = 3")
    notebook.run("%reset_selective -f ^[ab]$")
    assert notebook.run("print(keep); a")["ename"] == "NameError"
    notebook.run("%reset -f")
    assert notebook.run("keep")["ename"] == "NameError"
    assert notebook.run("x = 1\nprint(x)")["stdout"] == "1\n"


def test_frames_read_by_libraries(warm_notebook):
    warm_notebook.run(
        "import pandas as pd; df = pd.DataFrame({'a': [1, 5, 9]}); limit = 4; low = 2\nq = 'a > @limit'\ndef find(n): return df.query(f'a > @{n}')"
    )
    assert warm_notebook.run("print(len(df.query('a > @limit')))")["stdout"] == "2\n"
    assert warm_notebook.run("print(len(df.query(q)))")["stdout"] == "2\n"
    assert warm_notebook.run("print(pd.eval('limit + low'))")["stdout"] == "6\n"
    assert (
        warm_notebook.run("text = f'{limit}'; print('{limit}'.format(**globals()), text)")["stdout"]
        == "4 4\n"
    )
    assert warm_notebook.run("!echo $limit {low}")["stdout"].split() == ["4", "2"]


def test_a_cell_sees_no_variables_where_python_would_not(notebook):
    notebook.run("secret = 1")
    outcome = notebook.run(
        "try:\n    exec('secret', {})\nexcept NameError: print('no')\ntry:\n    eval('secret', {'x': 1})\nexcept NameError: print('no')"
    )
    assert outcome["stdout"] == "no\nno\n"


def test_reading_from_outside_unpickles_nothing(notebook, tmp_path):
    from dagger_kernel.runner.state import read_manifest

    marker = tmp_path / "executed"
    notebook.run(
        "import os\nclass Evil:\n    def __reduce__(self): return (os.system, ('touch "
        + str(marker)
        + "',))\n"
        "import pickle; data = pickle.dumps(Evil()); x = [1]; df = {'a': 2}"
    )
    marker.unlink(missing_ok=True)
    for path in notebook.root.rglob("*"):
        if path.is_file() and path.parent.name != "m" and path.name != "HEAD":
            path.write_bytes(b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR.")
    found = read_manifest(notebook.root)
    assert {entry["name"] for entry in found["variables"]} >= {"x", "df", "data"}
    assert json.dumps(found)
    assert not marker.exists()


def test_planted_manifests_give_clean_errors(tmp_path):
    import pytest

    from dagger_kernel.runner.state import ManifestError, read_manifest

    (tmp_path / "m").mkdir()
    assert read_manifest(tmp_path)["variables"] == []
    for head in ("../../etc/passwd", "/etc/passwd", "", ".", "missing.json", "\0", "a" * 4096):
        (tmp_path / "HEAD").write_text(head)
        with pytest.raises(ManifestError):
            read_manifest(tmp_path)
    good = {
        "format": 1, "sequence": 1, "parent": "", "cell": 1, "step": "s", "python": "3.11", "names": {},
        "components": {}, "lost": [], "unset": [], "ambient": {}, "lineage": {}, "verified": [],
    }  # fmt: skip
    (tmp_path / "HEAD").write_text("x.json")
    (tmp_path / "m" / "x.json").write_text(json.dumps(good))
    assert read_manifest(tmp_path)["cell"] == 1
    planted = [
        b"", b"[]", b"null", b"{", b"[" * 200_000, b"\xff\xfe", b"cos\nsystem\n(S'id'\ntR.",
        *(json.dumps({**good, **change}).encode() for change in (
            {"format": 2}, {"sequence": -1}, {"sequence": True}, {"sequence": 10**30}, {"parent": "../x"},
            {"names": {"a": ["k", 1, "t"]}}, {"names": {"a": [1, 1, "t", 1]}}, {"names": []},
            {"components": {"c": [["k"], ["../../x", 0, 1], "d", [], [], []]}},
            {"components": {"c": [["k"], ["f", -5, 1], "d", [], [], []]}},
            {"components": {"c": [["k"], ["f", 0, 1], "d", [["f", 0, 10, [[0, 10**9, "f", 0]]]], [], []]}},
            {"lost": [{"name": 5}]}, {"lost": "x"}, {"unset": [[]]}, {"ambient": 5}, {"step": None},
        )),
    ]  # fmt: skip
    for data in planted:
        (tmp_path / "m" / "x.json").write_bytes(data)
        with pytest.raises(ManifestError):
            read_manifest(tmp_path)


def test_a_damaged_state_directory_does_not_stop_the_cell(notebook):
    notebook.run("x = 1")
    (notebook.root / "HEAD").write_text("nonsense")
    outcome = notebook.run("print('still here')\ny = 2")
    assert outcome["stdout"] == "still here\n"
    assert "error" in outcome["report"]


def test_bytes_that_are_gone_cost_what_was_in_them_and_nothing_else(notebook):
    notebook.run(
        "import random, logging; random.seed(5); logging.getLogger('a').setLevel(10)\n"
        "x = [1]; untouched = [2]\n"
        "def f(): return 1\n"
        "class C: pass\n"
        "c = C()"
    )
    for blob in (notebook.root / "b").rglob("*"):
        if blob.is_file():
            blob.unlink()
    outcome = notebook.run(
        "".join(
            f"try: {name}\nexcept Exception as error: print(type(error).__name__)\n"
            for name in "xfc"
        )
        + "import random, logging\n"
        "x = [3]; y = 4; f = len; c = random.random() < 2; logging.getLogger('a').setLevel(20)"
    )
    assert outcome["stdout"] == "StateLostError\n" * 3
    assert "error" not in outcome["report"]
    assert notebook.run("print(x, y, f('ab'), c)")["stdout"] == "[3] 4 2 True\n"


def test_inspect_on_the_command_line(notebook):
    notebook.run("x = [1]")
    command = [sys.executable, "-m", "dagger_kernel.runner.state.inspect", str(notebook.root)]
    found = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=True
    )
    assert json.loads(found.stdout)["variables"][0]["name"] == "x"


def test_the_package_imports_only_the_standard_library():
    folder = Path(__file__).parents[3] / "dagger_kernel" / "runner"
    source = (
        "import sys, os\n"
        f"os.symlink({str(folder)!r}, 'dagger_kernel_runner')\n"
        "sys.path.insert(0, '.')\n"
        "import dagger_kernel_runner.state\n"
        "print([m for m in sys.modules if m.partition('.')[0] in ('IPython', 'numpy', 'pandas', 'cloudpickle', 'dill')])"
    )
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        found = subprocess.run(
            [sys.executable, "-c", source],
            capture_output=True,
            text=True,
            cwd=place,
            check=True,
            env={"PATH": os.environ["PATH"]},
        )
    assert found.stdout.strip() == "[]"

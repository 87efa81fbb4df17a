"""What a step read and wrote, and which cells made a variable."""

import json

import pytest

from dagger_kernel.runner.state.lineage import changed_files, history, recompute_plan


def cells_of(notebook, *names):
    return [step.cell for step in recompute_plan(history(notebook.root), names)]


def test_reads_and_writes_of_each_step(notebook):
    notebook.run_all(["a = [1]; b = 2", "c = a + [b]", "del b", "a.append(5)"])
    lineage = [manifest.lineage for _, manifest in history(notebook.root)]
    assert lineage[0]["written"] == ["a", "b"]
    assert lineage[1]["read"] == ["a", "b"]
    assert lineage[1]["written"] == ["c"]
    assert lineage[2]["deleted"] == ["b"]
    assert lineage[3] == {
        "read": ["a"],
        "written": ["a"],
        "deleted": [],
        "source": "a.append(5)\n",
    }


def test_a_plan_starts_where_the_variable_was_bound(notebook):
    notebook.run_all(["n = 3", "l = [n]", "n = 4", "l.append(n)", "print(n)", "l.append(0); m = l"])
    assert cells_of(notebook, "n") == [3, 4, 5]
    assert cells_of(notebook, "l") == [2, 4, 6]
    assert cells_of(notebook, "l", "m") == [2, 4, 6]
    with pytest.raises(KeyError):
        cells_of(notebook, "nothing")


def test_a_cell_that_met_a_stand_in_touched_nothing(notebook):
    notebook.run_all(
        ["import socket; s = socket.socket()", "try: s\nexcept Exception: pass", "s.send(b'')"]
    )
    assert cells_of(notebook, "s") == [1]


def test_a_deleted_variable_has_no_plan(notebook):
    notebook.run_all(["l = [1]", "del l"])
    with pytest.raises(KeyError):
        cells_of(notebook, "l")


def test_lists_of_changed_files(tmp_path):
    assert changed_files(tmp_path) == []
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "000002-ab.json").write_text(json.dumps(["x.csv"]))
    assert changed_files(tmp_path) == [(2, "ab", ["x.csv"])]

"""What a step read and wrote, and running its cells again on what they saw."""

from dagger_kernel.runner.state.lineage import history, recompute_plan


def test_reads_and_writes_of_each_step(notebook):
    notebook.run_all(["a = [1]; b = 2", "c = a + [b]", "del b", "a.append(5)"])
    lineage = [manifest.lineage for _, manifest in history(notebook.root)]
    assert lineage[0]["written"] == ["a", "b"]
    assert lineage[1]["read"] == ["a", "b"]
    assert lineage[1]["written"] == ["c"]
    assert lineage[2]["deleted"] == ["b"]
    assert lineage[3] == {"read": ["a"], "written": ["a"], "deleted": []}


def test_a_plan_starts_where_the_variable_was_bound(notebook):
    notebook.run_all(
        [
            "n = 3",
            "import socket; s = socket.socket()",
            "n = 4",
            "x = s if False else 0\ntry: s\nexcept Exception: pass",
        ]
    )
    plan = recompute_plan(notebook.root, "s")
    assert [entry["cell"] for entry in plan] == [2, 4]
    assert recompute_plan(notebook.root, "n")[0]["cell"] == 3


def test_a_cell_runs_again_on_what_it_saw(notebook):
    notebook.run_all(
        ["n = 3; data = list(range(n))", "total = sum(data)", "data.append(100); n = 9"]
    )
    at = recompute_plan(notebook.root, "total")[0]["at"]
    outcome = notebook.run(
        "from dagger_kernel_runner.state.lineage import open_inputs\n"
        f"scratch = {{'__name__': 'scratch'}}\n_session = open_inputs({str(notebook.root)!r}, {at!r}, scratch)\n"
        "exec('total = sum(data); seen = n', scratch)\nprint(scratch['total'], scratch['seen'], total, data, n)\n"
        "del scratch, _session"
    )
    assert outcome["stdout"] == "3 3 3 [0, 1, 2, 100] 9\n", outcome["stdout"]

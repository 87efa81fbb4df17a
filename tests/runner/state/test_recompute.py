"""Lost variables made again: on request, by cells that use them, and never wrongly."""

import json

import pytest

HOLDER = """
import _thread, socket
class Counter:
    def __init__(self, data):
        self.sock, self.data, self.at = socket.socket(), iter(data), 0
    def take(self):
        self.at += 1
        return next(self.data)
"""


@pytest.fixture(params=[False, True], ids=["asked", "automatic"])
def cell(request, notebook):
    """Run a cell: with the automatic mode, or with lost variables asked for by hand."""

    def run(source, *lost):
        if request.param:
            return notebook.run(source, recompute=True)
        for name in lost:
            outcome = notebook.run(f"%sandbox recompute {name}")
            assert outcome["ename"] is None, outcome["evalue"]
        return notebook.run(source)

    run.notebook = notebook
    return run


def test_a_lost_variable_is_there_for_the_cells_that_use_it(cell):
    cell(HOLDER)
    first = cell("c = Counter([10, 20, 30, 40])")
    assert [entry["name"] for entry in first["report"]["lost"]] == ["c"]
    assert cell("print(c.take())", "c")["stdout"] == "10\n"
    assert cell("print(c.take(), type(c) is Counter)")["stdout"] == "20 True\n"
    cell("unrelated = 1")
    assert cell("print(c.take(), c.at, c.sock.fileno() > 0)")["stdout"] == "30 3 True\n"


def test_its_cells_see_what_they_saw(cell):
    cell(HOLDER + "n = 3")
    cell("c = Counter(range(n))")
    cell("n = 100")
    assert cell("print(list(c.data), n)", "c")["stdout"] == "[0, 1, 2] 100\n"


def test_what_has_not_changed_since_is_shared(cell):
    cell(HOLDER + "data = [1, 2]")
    cell("c = Counter(data)")
    assert cell("data.append(3); print(list(c.data))", "c")["stdout"] == "[1, 2, 3]\n"


def test_what_its_own_cell_made_is_shared(cell):
    cell(HOLDER + "data = [1, 2]; c = Counter(data)")
    assert cell("print(type(c) is Counter); data.append(3); print(list(c.data))", "c")[
        "stdout"
    ] == ("True\n[1, 2, 3]\n")


def test_names_for_one_lost_object(cell):
    cell(HOLDER + "c = Counter([1, 2]); d = c")
    assert cell("print(c is d, d.take(), c.take())", "d")["stdout"] == "True 1 2\n"


def test_random_streams_are_those_of_then_and_go_on_as_before(cell):
    cell(HOLDER + "import random; random.seed(3); first = random.random()")
    cell("c = Counter([random.random(), random.random()])")
    cell("third = random.random()")
    outcome = cell(
        "a, b = c.data; r = random.Random(3); now = [first, a, b, third, random.random()]\n"
        "print(now == [r.random() for _ in range(5)])",
        "c",
    )
    assert outcome["stdout"] == "True\n", outcome


def test_functions_made_again_see_the_live_globals(cell):
    cell("import socket; k = 1\ndef make(s):\n    return [s, lambda: k]")
    cell("pair = make(socket.socket())")
    assert cell("k = 5; print(pair[1](), pair[0].fileno() > 0)", "pair")["stdout"] == "5 True\n"


def test_environment_directory_and_path_are_put_back(cell):
    cell("import os, sys; os.environ['JOB'] = 'then'; os.mkdir('sub'); os.chdir('sub')")
    cell("import socket; p = [socket.socket(), os.environ['JOB'], os.path.basename(os.getcwd())]")
    cell("os.environ['JOB'] = 'now'; os.chdir('..'); sys.path.append('/x')")
    outcome = cell(
        "print(p[1:], os.environ['JOB'], os.path.basename(os.getcwd()), sys.path[-1])", "p"
    )
    assert outcome["stdout"] == "['then', 'sub'] now home /x\n"


def test_nothing_its_cells_print_is_shown_again(cell):
    cell(HOLDER)
    cell("print('loud'); display('louder'); c = Counter([1])")
    assert cell("print(c.take())", "c")["stdout"] == "1\n"


def test_what_can_be_saved_after_all_is_kept(notebook):
    notebook.run("import sys, types\nopen('lib.py', 'w').write('')")
    notebook.run("import socket; l = [1, socket.socket()]")
    assert notebook.run("l[1] = 'gone'", recompute=True)["report"]["lost"] == []
    assert notebook.run("print(l)")["stdout"] == "[1, 'gone']\n"


def test_only_what_is_asked_for_is_made_again(notebook):
    notebook.run(HOLDER + "c = Counter([1]); d = Counter([2])")
    notebook.run("%sandbox recompute c")
    assert notebook.run("print(c.take())")["stdout"] == "1\n"
    assert notebook.run("d.sock.fileno()")["ename"] == "StateLostError"
    assert "%sandbox recompute d" in notebook.run("d.sock.fileno()")["evalue"]


def test_bound_anew_it_is_not_made_again(notebook):
    notebook.run(HOLDER + "c = Counter([1])")
    notebook.run("%sandbox recompute c")
    notebook.run("c = 5")
    assert notebook.run("print(c)")["stdout"] == "5\n"
    notebook.run("del c")
    assert notebook.run("c")["ename"] == "NameError"


def test_two_lost_ones_used_together(cell):
    cell("import csv; rows = csv.reader(['1,2', '3,4', '5,6'])")
    cell("names = csv.reader(['a,b', 'c,d', 'e,f'])")
    assert cell("print(next(names), next(rows))", "rows", "names")["stdout"] == (
        "['a', 'b'] ['1', '2']\n"
    )
    assert cell("print(dict(zip(next(names), next(rows))))")["stdout"] == ("{'c': '3', 'd': '4'}\n")
    assert cell("print(next(rows))")["stdout"] == "['5', '6']\n"
    assert cell("print(next(names))")["stdout"] == "['e', 'f']\n"


def test_a_deleted_one_is_gone(cell):
    cell(HOLDER + "c = Counter([1])")
    cell("c.take(); del c", "c")
    assert cell("c")["ename"] == "NameError"


def test_the_same_cell_may_go_on_with_it(notebook):
    notebook.run(HOLDER + "c = Counter([1, 2])")
    outcome = notebook.run("%sandbox recompute c\nprint(c.take())\n%sandbox recompute c")
    assert outcome["stdout"] == "c: made again by cell [1]\n1\nc: made again by cell [1]\n"
    assert notebook.run("%sandbox recompute Counter")["stdout"] == "Counter: it is not lost\n"


def test_a_use_that_the_source_does_not_show(cell):
    cell(HOLDER + "c = Counter([1, 2])\ndef use(): return c.take()")
    assert cell("print(use(), use())", "c")["stdout"] == "1 2\n"
    assert cell("print(use() if False else eval('c').at)")["stdout"] == "2\n"


REFUSED = {
    "a later cell changed what it looks into": (
        ["import csv; data = ['1,2']", "c = csv.reader(data)", "data.append('3,4')"],
        "it looks into 'data', which a later cell changed",
    ),
    "its cell failed": (
        [HOLDER + "c = Counter([1]); 1 / 0"],
        "cell [1] did not end well",
    ),
    "its cell fails now": (
        [
            HOLDER + "import os; flag = 'DK_ONCE' not in os.environ",
            "assert not os.path.exists('/proc/self/dk'); c = Counter([1]); "
            "assert flag, 'once only'; import builtins; "
            "assert not hasattr(builtins, '_dk_again'), 'ran before'",
            "import builtins; builtins._dk_again = True",
        ],
        "cell [2] failed when it ran again, with AssertionError: ran before",
    ),
    "its cell would write": (
        [
            HOLDER + "import builtins, os",
            "c = Counter([1])\nif hasattr(builtins, '_dk_w'): open('new.txt', 'w')",
            "builtins._dk_w = True",
        ],
        "PermissionError: it would change new.txt",
    ),
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda name: name.replace(" ", "-"))
def test_refused_in_clear_words(notebook, case):
    cells, why = REFUSED[case]
    notebook.run_all(cells)
    outcome = notebook.run("%sandbox recompute c")
    assert outcome["ename"] == "RecomputeError", outcome
    assert outcome["evalue"].startswith("'c' cannot be made again: ")
    assert why in outcome["evalue"]
    outcome = notebook.run("list(getattr(c, 'sock', c))", recompute=True)
    assert outcome["ename"] == "StateLostError"
    assert why in outcome["evalue"]
    assert notebook.run("print(5)")["stdout"] == "5\n"


def test_there_is_no_such_variable(notebook):
    outcome = notebook.run("%sandbox recompute nothing")
    assert (outcome["ename"], "no such variable" in outcome["evalue"]) == ("RecomputeError", True)


def write_change(notebook, step, *paths):
    """Note a change of files as the supervisor does."""
    folder = notebook.root / "changes"
    folder.mkdir(exist_ok=True)
    number = (notebook.root / "HEAD").read_text()[:6]
    (folder / f"{number}-{step}.json").write_text(json.dumps(paths))


def test_a_cell_that_changed_files_does_not_run_again(notebook):
    notebook.run(HOLDER + "c = Counter([1])")
    write_change(notebook, "s1", "report.csv")
    evalue = notebook.run("%sandbox recompute c")["evalue"]
    assert "cell [1] changed files (report.csv)" in evalue


def test_a_file_it_reads_must_be_as_it_was(notebook):
    notebook.run(HOLDER + "open('data.txt', 'w').write('1\\n2\\n'); name = 'data' + '.txt'")
    write_change(notebook, "s1", "data.txt")
    notebook.run("c = Counter(list(open(name)))")
    assert notebook.run("print(c.take())", recompute=True)["stdout"] == "1\n\n"
    notebook.run("open(name, 'a').write('3')")
    write_change(notebook, "s4", "data.txt")
    outcome = notebook.run("c.sock.fileno()", recompute=True)
    assert "cell [2] reads data.txt, which a later cell changed" in outcome["evalue"]

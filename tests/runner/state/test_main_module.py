"""``__main__`` itself in a variable: it is the live module, and costs no other variable."""

import pytest

PROGRAMS = {
    "imported": [
        "x=[1]; y=2",
        "import __main__",
        "print(x, y)",
        "print(__main__.y, __main__.x is x)",
        "x.append(2)",
        "print('another cell')",
        "__main__.z=[3]; del __main__",
        "print(x, y, z)",
    ],
    "under another name": [
        "x=[1]; y=2",
        "import __main__ as mm",
        "print(mm.x)",
        "mm.x.append(mm.y)",
        "print('y' in dir(mm), hasattr(mm, 'nosuch'), vars(mm)['y'])",
        "del mm.y",
        "print(x, 'y' in globals(), mm is __import__('__main__'))",
    ],
    "in a list and in an object": [
        "x=[1]; y=2; z=3",
        "import sys, types; mods=[sys.modules['__main__']]; ns=types.SimpleNamespace(main=mods[0])",
        "print(x)",
        "print(mods[0].z, ns.main is mods[0], sys.modules['__main__'] is ns.main)",
        "print(x, y, z)",
    ],
    "in a function and under another key": [
        "x=[1]; y=2; import sys\ndef f(m=sys.modules['__main__']): return m.y",
        "sys.modules['main_too']=sys.modules['__main__']",
        "print(f(), x)",
        "print(x, y)",
    ],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_one_process(program, notebook):
    notebook.assert_like_one_process(PROGRAMS[program])


def test_untouched_variables_stay_unread(notebook):
    notebook.run("x = [1]; y = 2")
    assert notebook.run("import __main__")["report"]["loaded"] == []
    assert notebook.run("__main__.y")["report"]["loaded"] == ["__main__", "y"]


def test_code_that_looks_variables_up_while_it_is_saved_costs_none(notebook):
    notebook.run("keep = [1]; other = 2")
    outcome = notebook.run(
        "import io, sys, copyreg\n"
        "def look(b): return (io.BytesIO, (bytes(vars(sys.modules['__main__'])['keep']),))\n"
        "copyreg.pickle(io.BytesIO, look)\n"
        "b = io.BytesIO(b'a')"
    )
    assert outcome["report"]["deleted"] == []
    assert notebook.run("print(keep, other, b.getvalue())")["stdout"] == "[1] 2 b'\\x01'\n"

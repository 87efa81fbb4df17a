"""What the user puts into libraries stays there, can be undone, and changes nothing else."""

import pytest

PROGRAMS = {
    "functions written in C": [
        "import math, time; of=math.floor; math.floor=lambda x: 'P'; rs=time.sleep; time.sleep=lambda s: 's'; kept=[rs]",
        "print(math.floor(2.5), of(2.5), time.sleep(1), kept[0] is rs)",
        "rt=time.time",
        "time.time=lambda: 1; print(rt() > 5)",
        "print(time.time(), rt() > 5)",
        "math.floor=of; time.sleep=rs; time.time=rt",
        "print(math.floor(2.5), math.floor is of, time.sleep is rs, time.time is rt, time.time() > 5)",
    ],
    "builtins": [
        "import builtins; op=print; builtins.print=lambda *a: op('patched', *a)",
        "print(1)",
        "builtins.print=op",
        "print(2, op is print)",
    ],
    "functions of the standard library": [
        "import json, functools\noj=json.dumps\n@functools.wraps(oj)\ndef w(o, **k): return 'W'+oj(o, **k)\njson.dumps=w",
        "print(json.dumps([1]), oj([1]), json.dumps is w)",
        "json.dumps=oj",
        "print(json.dumps([1]), json.dumps is oj, w([2]))",
        "json.mine=[1]",
        "print(json.mine); del json.mine",
        "print(hasattr(json, 'mine'))",
    ],
    "a class": [
        "import datetime, os; from unittest import mock\nd=datetime.datetime(2020,1,2); real_dt=datetime.datetime; os.cpu_count=mock.Mock(return_value=3)",
        "class FD(datetime.datetime):\n    @classmethod\n    def now(cls, tz=None): return cls(2000,1,1)",
        "datetime.datetime=FD; e=FD(2021,3,4); r=real_dt(2022,2,2)",
        "print(datetime.datetime.now(), os.cpu_count(), datetime.datetime is FD)",
        "print(type(d) is real_dt, type(e) is FD, type(r) is real_dt, FD.__mro__[1] is real_dt)",
        "datetime.datetime=real_dt",
        "print(datetime.datetime is real_dt, type(d) is datetime.datetime, os.cpu_count(), os.cpu_count.call_count)",
    ],
    "started mocks": [
        "import os, shutil; from unittest import mock",
        "pat=mock.patch('os.getppid', return_value=7); m=pat.start()",
        "print(os.getppid(), os.getppid is m, m.call_count)",
        "pat.stop(); print(os.getppid() > 7)",
        "print(os.getppid() != 7)",
        "p2=mock.patch.multiple('shutil', which=mock.DEFAULT, copy=lambda *a: 'c'); p2.start()\nmock.patch.object(shutil, 'move', lambda *a: 'm').start(); None",
        "print(shutil.copy(1, 2), shutil.move(1, 2), type(shutil.which).__name__)",
        "mock.patch.stopall()",
        "print(shutil.move.__module__, shutil.copy.__module__, shutil.which('sh') is not None)",
    ],
    "by functions of an own module and of an earlier cell": [
        "text='''import os, time as T\ndef go(): os.getlogin=lambda: 'me'\ndef slow():\n    T.sleep=lambda s: 'no'\n    T.extra=[5]\n'''\n_=open('pm.py','w').write(text)\nimport pm; pm.go()",
        "import os; print(os.getlogin())",
        "pm.slow()",
        "import time; print(time.sleep(1), time.extra)",
        "del time.extra",
        "print(hasattr(time, 'extra'))",
        "def patch():\n    import json as J\n    os.getpgrp=lambda: 88\n    J.added={'a': 1}",
        "patch()",
        "import json; print(os.getpgrp(), json.added)",
    ],
    "accessors of pandas": [
        "import pandas as pd\nclass Acc:\n    def __init__(s, o): s.o=o\n    def n(s): return len(s.o)\npd.api.extensions.register_dataframe_accessor('acc')(Acc)\n@pd.api.extensions.register_series_accessor('sac')\nclass Sac(Acc): pass\ndf=pd.DataFrame({'a': [1]})",
        "print(pd.DataFrame({'a': [1, 2]}).acc.n(), df.acc.n(), df.a.sac.n(), 'acc' in dir(df), pd.DataFrame.acc is Acc)",
        "print(df.a.sac.n())",
        "del pd.DataFrame.acc",
        "print(hasattr(pd.DataFrame, 'acc'), df.a.sac.n())",
    ],
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_one_process(program, warm_notebook):
    warm_notebook.assert_like_one_process(PROGRAMS[program])


@pytest.mark.parametrize("program", [p for p in PROGRAMS if "pandas" not in p])
def test_as_in_one_process_without_preloaded_libraries(program, engines, tmp_path):
    from .harness import Notebook

    Notebook(engines("bare"), tmp_path).assert_like_one_process(PROGRAMS[program])


def test_a_lost_class_takes_its_instances_and_nothing_else(notebook):
    notebook.run(
        "import datetime, os; from unittest import mock; os.cpu_count = mock.Mock(return_value=3)\n"
        "class FD(datetime.datetime): v = [1]\n"
        "class G(FD): pass"
    )
    # Nothing in the source tells which attribute this is, so the class below is lost.
    report = notebook.run(
        "e = FD(2021, 3, 4); g = G(2022, 1, 1); keep = [e, 'k']; n = 5\n"
        "setattr(datetime, 'date' + 'time', FD)"
    )["report"]
    assert {entry["name"] for entry in report["lost"]} == {"FD", "G", "e", "g", "keep"}
    outcome = notebook.run("print(os.cpu_count(), keep[1], n)")
    assert outcome["stdout"] == "3 k 5\n"
    for use in ("e.year", "keep[0].year", "g.year", "G()", "FD.v"):
        outcome = notebook.run(use)
        assert outcome["ename"] == "StateLostError"
        assert outcome["evalue"].count("To get it back") == 1
    assert notebook.run("import datetime\nclass FD(datetime.datetime): pass\ne = FD(2020, 1, 1)")
    assert notebook.run("print(e.year, os.cpu_count())")["stdout"] == "2020 3\n"

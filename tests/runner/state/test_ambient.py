"""State of the interpreter, of libraries and of IPython carries on."""

import pytest

PROGRAMS = {
    "process": [
        "import os, sys, time\nos.mkdir('sub'); os.chdir('sub'); os.environ['A_B']='1'; sys.path.insert(0, os.getcwd()); sys.setrecursionlimit(3210); sys.argv[:]=['x','y']; os.environ['TZ']='EST5'; time.tzset()\nopen('mm.py','w').write('V=1')",
        "print(os.path.basename(os.getcwd()), os.environ['A_B'], sys.getrecursionlimit(), sys.argv, time.localtime(0).tm_hour)\nimport mm; print(mm.V)\ndel os.environ['A_B']",
        "print(os.environ.get('A_B'), sys.path[0].endswith('sub'))\nos.chdir('..')", "print(os.path.basename(os.getcwd()) != 'sub')",
    ],
    "interpreter": [
        "import warnings, decimal, locale\nwarnings.simplefilter('error'); decimal.getcontext().prec=4; decimal.getcontext().traps[decimal.Inexact]=False",
        "print(decimal.Decimal(1)/3)\ntry: warnings.warn('w')\nexcept UserWarning: print('raised')\nwarnings.resetwarnings()", "warnings.warn('quiet now') if False else None; print(decimal.getcontext().prec, warnings.filters)",
    ],
    "logging": [
        "import logging, io\nbuf=io.StringIO(); h=logging.StreamHandler(buf); h.setFormatter(logging.Formatter('%(name)s:%(message)s'))\nlog=logging.getLogger('my.app'); log.setLevel('INFO'); log.addHandler(h); log.propagate=False; logging.addLevelName(15,'LOUD')\nlog.info('one')",
        "log.info('two'); log.debug('no'); print(buf.getvalue(), logging.getLevelName(15), log.handlers[0] is h, logging.getLogger('my.app') is log)",
        "logging.getLogger('my.app').info('three'); print(h.stream.getvalue().count(chr(10)))\nlogging.basicConfig(level='ERROR', format='%(message)s', stream=io.StringIO())", "print(logging.root.level, len(logging.root.handlers)); logging.disable(50)", "print(logging.root.manager.disable)",
    ],
    "library options": [
        "import numpy as np, pandas as pd, matplotlib.pyplot as plt\nnp.set_printoptions(precision=2, suppress=True); np.seterr(divide='raise'); pd.set_option('display.max_rows', 5, 'display.precision', 2); plt.rcParams['figure.figsize']=(3,2); plt.style.use('ggplot')",
        "print(np.array([1.23456]), np.geterr()['divide'], pd.get_option('display.max_rows'), pd.get_option('display.precision'), plt.rcParams['figure.figsize'], plt.rcParams['axes.facecolor'])\npd.reset_option('display.max_rows'); plt.rcdefaults()",
        "print(pd.get_option('display.max_rows'), pd.get_option('display.precision'), plt.rcParams['figure.figsize'], plt.rcParams['axes.facecolor'], np.array([1/3]))",
    ],
    "patched libraries": [
        "import pandas as pd, json, collections, builtins\npd.DataFrame.shape2 = lambda self: self.shape * 2\njson.mine = [1]\nbuiltins.answer = 42\nsetattr(collections, 'Older', dict)\n@pd.api.extensions.register_dataframe_accessor('geo')\nclass Geo:\n    def __init__(self, o): self.o=o\n    def n(self): return len(self.o)\npd.DataFrame.geo = pd.DataFrame.geo if False else pd.DataFrame.__dict__['geo']",
        "print(pd.DataFrame({'a':[1]}).shape2(), json.mine, answer, collections.Older is dict, pd.DataFrame({'a':[1,2]}).geo.n())\njson.mine.append(2)", "import json; print(json.mine)",
    ],
    "magics": [
        "from IPython.core.magic import register_line_magic, register_cell_magic, Magics, magics_class, line_magic\nstate=[0]\n@register_line_magic\ndef twice(line): state[0]+=1; return line*2\n@register_cell_magic\ndef shout(line, cell): print(cell.upper(), state)\n@magics_class\nclass MM(Magics):\n    def __init__(self, shell): super().__init__(shell); self.n=0\n    @line_magic\n    def cnt(self, line): self.n+=1; return self.n\nget_ipython().register_magics(MM)",
        "print(get_ipython().run_line_magic('twice', 'ab'), get_ipython().run_line_magic('cnt', ''))", "%%shout\nhello", "print(get_ipython().run_line_magic('cnt', ''), state)",
        "%alias_magic tw twice\n%alias say echo said", "%say it\nprint(get_ipython().run_line_magic('tw', 'x'))", "%unalias say", "try: get_ipython().run_line_magic('say', '')\nexcept Exception as e: print(type(e).__name__)",
    ],
    "shell options": [
        "%precision 3\nget_ipython().ast_node_interactivity = 'all'\n%xmode Minimal\nfrom __future__ import annotations", "1.23456789\n2.5\ndef f(x: Undefined): ...\nprint(f.__annotations__)", "print(get_ipython().ast_node_interactivity, get_ipython().InteractiveTB.mode)",
    ],
    "events and formatters": [
        "seen=[]\ndef cb(*a): seen.append(1)\nget_ipython().events.register('post_run_cell', cb)\nclass T: pass\nget_ipython().display_formatter.formatters['text/plain'].for_type(T, lambda o, p, c: p.text('a T'))\nNone", "T()", "print(len(seen))", "get_ipython().events.unregister('post_run_cell', cb)", "print(len(seen))", "print(len(seen))",
    ],
    "autoreload": [
        "%load_ext autoreload\n%autoreload 2\nopen('mo.py','w').write('v=1')\nimport mo; print(mo.v)", "open('mo.py','w').write('v=22222')\nimport os; os.utime('mo.py',(4e9,4e9))", "print(mo.v)",
    ],
    "open figures": [
        "import matplotlib.pyplot as plt\nplt.figure(7); plt.plot([1,2])\nplt.figure('named'); plt.plot([3]); None", "print(plt.get_fignums(), plt.gcf().get_label(), len(plt.figure(7).axes[0].lines))", "print(plt.gcf().number); plt.close(7)", "print(plt.get_fignums(), plt.gca().lines[0].get_ydata().tolist())",
    ],
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_one_process(program, warm_notebook):
    warm_notebook.assert_like_one_process(PROGRAMS[program])


def test_libraries_are_not_imported_for_their_options(engines, tmp_path):
    from .harness import Notebook

    notebook = Notebook(engines("bare"), tmp_path)
    notebook.run(
        "import matplotlib; matplotlib.rcParams['lines.linewidth'] = 7; import numpy as np; np.random.seed(1); a = np.random.rand()"
    )
    assert (
        notebook.run("import sys; print('numpy' in sys.modules, 'matplotlib' in sys.modules)")[
            "stdout"
        ]
        == "False False\n"
    )
    outcome = notebook.run(
        "import numpy, matplotlib; print(numpy.random.rand(), matplotlib.rcParams['lines.linewidth'])"
    )
    assert outcome["stdout"] == "0.7203244934421581 7.0\n"


def test_a_broken_setting_costs_nothing_else(notebook):
    outcome = notebook.run(
        "import logging, socket\nlogging.root.handlers.append(socket.socket()); x = 1\nlogging.root.setLevel(5)"
    )
    assert "error" not in outcome["report"]
    assert notebook.run("print(x)")["stdout"].startswith("1")

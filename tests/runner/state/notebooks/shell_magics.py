# IPython itself: magics, shell, In and Out, own magics, aliases, modules on disk.
# %%
x = 21
x * 2
# %%
_ + 1
# %%
print(_, __, Out[1], In[1].splitlines()[0], _2)
# %%
%%writefile tools.py
counter = 0
def bump():
    global counter
    counter += 1
    return counter
# %%
import sys
sys.path.insert(0, ".")
import tools
tools.bump(), tools.bump()
# %%
from tools import bump
print(bump(), tools.counter)
# %%
%%writefile tools.py
counter = 100
def bump():
    return "new"
# %%
import importlib
before = tools.bump()
importlib.reload(tools)
before, tools.bump(), bump() is not None
# %%
lines = !printf 'one\ntwo\n'
print(lines, lines.n.count("\n"))
# %%
from IPython.core.magic import register_line_magic
@register_line_magic
def shout(line):
    return line.upper()
# %%
%shout hello
# %%
%alias_magic yell shout
said = %yell again
said
# %%
import os
os.makedirs("deep", exist_ok=True)
%cd -q deep
os.environ["MODE"] = "test"
# %%
print(os.path.basename(os.getcwd()), os.environ["MODE"])
%cd -q ..
# %%
%precision 3
3.14159265
# %%
1 / 3
# %%
%%capture captured
print("kept")
# %%
captured.stdout
# %%
import logging
import warnings
logging.getLogger("app").setLevel(logging.DEBUG)
warnings.filterwarnings("ignore", message="old")
# %%
with warnings.catch_warnings(record=True) as seen:
    warnings.warn("old thing")
print(len(seen), logging.getLogger("app").level, logging.getLogger("app.sub").getEffectiveLevel())

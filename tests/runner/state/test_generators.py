"""Suspended generators go on where they stood, or are reported; they never restart."""

import sys

import pytest

PROGRAMS = {
    "loop": ["def g():\n    for i in range(5): yield i*i\nx=g(); next(x); y=g(); z=g(); list(z)", "print(next(x), next(y), list(z))", "print(next(x), list(x))", "print(list(x), list(y))"],
    "expression": ["k=2\nx=(i*k+j for i in range(3) for j in [0,1]); next(x)", "print(next(x))", "k=10\nprint(list(x))", "print(list(x))"],
    "send and locals": ["def g(a, *r, b=None, **k):\n    c=[a]\n    def inner(): return c\n    n=0\n    while True:\n        got = yield a, r, b, k, n, inner()\n        n+=1\n        if got: c.append(got)\nx=g(1,2,b=3,q=4); next(x)", "print(x.send('s'))", "print(x.send(None)); x.close()", "print(list(x))"],
    "delegation": ["def sub():\n    v = yield 1\n    print('got', v)\n    yield 2\n    return 'r'\ndef g():\n    r = yield from sub()\n    yield r\nx=g(); next(x)", "print(x.send('v'), x.gi_yieldfrom is not None)", "print(next(x))", "print(list(x))"],
    "throw": ["def g():\n    try:\n        yield 1\n    except ValueError as e:\n        yield e.args\n    finally: print('done')\nx=g(); next(x); y=g(); next(y)", "print(x.throw(ValueError('v')), list(x))", "y.close()"],
    "object and its generator": ["class A:\n    def __init__(self): self.n=0; self.it=self.run()\n    def run(self):\n        while True:\n            self.n+=1\n            yield self.n\na=A(); next(a.it); it=a.it", "print(next(a.it), a.n, it is a.it)", "print(next(it), a.n)"],
    "shared iterator": ["it=iter(range(10))\ndef g():\n    for v in it: yield v\nx=g(); next(x)", "print(next(it), next(x))", "print(next(x), next(it))"],
    "open file": ["def g():\n    with open('q.txt','w') as fh:\n        for i in range(3):\n            fh.write('x')\n            yield i\nx=g(); next(x)", "print(next(x))", "print(list(x), open('q.txt').read())"],
    "many locals": ["def g():\n" + "".join(f"    v{i}={i}\n" for i in range(300)) + "    for i in range(3): yield " + "+".join(f"v{i}" for i in range(300)) + "\nx=g(); next(x)", "print(next(x))", "print(list(x))"],
    "in containers": ["def g(n):\n    for i in range(n): yield i\nd={'a': [g(3), g(4)], 'z': zip(g(3), 'abc'), 'm': map(str, g(2))}; next(d['a'][0]); next(d['z'])", "print(next(d['a'][0]), next(d['a'][1]), next(d['z']), next(d['m']))", "print([list(v) for v in d['a']], list(d['z']), list(d['m']))"],
    "method and closure": ["def mk(step):\n    def g(self):\n        nonlocal step\n        while True:\n            step += 1\n            yield step\n    return g\nclass A: go = mk(10)\na=A(); x=a.go(); next(x); y=a.go(); next(y)", "print(next(x), next(y))", "print(next(x), next(y))"],
    "inlined comprehension": ["def g():\n    for i in range(3):\n        z=[q for q in range(i+2)]\n        yield [w*2 for w in z]\nx=g(); next(x)", "print(next(x))", "print(list(x))"],
}  # fmt: skip


@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="not known for this interpreter: reported lost"
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_generators_go_on(program, engines, tmp_path):
    from .harness import Notebook

    Notebook(engines("bare"), tmp_path).assert_like_one_process(PROGRAMS[program])


@pytest.mark.parametrize(
    "source",
    [
        "def g():\n    try: 1/0\n    except ZeroDivisionError:\n        yield 1\n        raise\nx=g(); next(x)",
        "def g():\n    print(1, (yield 'p'))\n    yield 3\nx=g(); next(x)",
    ],
)
def test_what_cannot_be_read_completely_is_reported(source, engines, tmp_path):
    from .harness import Notebook

    notebook = Notebook(engines("bare"), tmp_path)
    assert [entry["name"] for entry in notebook.run(source)["report"]["lost"]] == ["x"]
    assert notebook.run("next(x)")["ename"] == "StateLostError"

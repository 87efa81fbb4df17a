"""Programs over several cells print what they print in a single process."""

import pytest

PROGRAMS = {
    "class attribute and variable share a list": [
        "a=[1]\nclass C: x=a",
        "C.x.append(2)",
        "print(a, C.x is a)",
        "a.append(3)",
        "print(C.x)",
    ],
    "stale names do not come back": [
        "t=[1]; p=[t]",
        "t=[2]",
        "p.append(0)",
        "print(t, p)",
        "del t",
        "print(p)",
        "'t' in globals()",
        "print('t' in dir())",
    ],
    "transforms know their parents where they are": [
        "from matplotlib.figure import Figure\nfigure=Figure(); axes=figure.add_subplot(); line,=axes.plot([1,2,3])",
        "from matplotlib.transforms import TransformNode\n"
        "waiting=[axes.transData, axes.transAxes, figure.transFigure, line.get_transform()]; seen={}\n"
        "while waiting:\n    node=waiting.pop()\n    if id(node) in seen: continue\n    seen[id(node)]=node\n"
        "    parents=[ref() for ref in node._parents.values()]\n"
        "    waiting += [n for n in [*vars(node).values(), *parents] if isinstance(n, TransformNode)]\n"
        "print(len(seen) > 10, all(id(ref())==key for node in seen.values() for key, ref in node._parents.items() if ref() is not None))",
        "axes.set_xlim(0, 10); print([round(float(v)) for v in axes.transData.transform((10, 0)) - axes.transAxes.transform((1, 0))][0])",
    ],
    "delete of a partner": [
        "t=[1]; p=[t]",
        "del t",
        "p[0].append(5)",
        "print(p)\ntry: t\nexcept NameError: print('gone')",
    ],
    "names bound before an exception": ["x=1; 1/0", "print(x)\nx=2\nraise SystemExit", "print(x)"],
    "alias of atoms": [
        "a='some text'*3; b=a; c=10**20; d=c",
        "print(a is b, c is d)",
        "a=1",
        "print(b)",
    ],
    "instance dictionary alias": [
        "class A: pass\na=A(); a.x=1; d=vars(a)",
        "d['x']=2; print(a.x)",
        "a.y=3; print(d)",
        "class Borg:\n    s={}\n    def __init__(self): self.__dict__=self.s\nb=Borg(); c=Borg()",
        "b.q=1; print(c.q, Borg.s)",
        "c.r=2; print(b.r, Borg.s)",
    ],
    "pickle hooks of the user do not run": [
        "class H:\n    def __init__(self): self.a=1; self.cache=[1]\n    def __getstate__(self): print('hook'); return {}\n"
        "    def __setstate__(self, s): print('hook')\n    def __reduce__(self): print('hook'); raise TypeError\nh=H()",
        "print(h.a, h.cache)",
        "print(h.__dict__)",
    ],
    "slots and properties": [
        "class S:\n    __slots__=('a','__b','__dict__')\n    def __init__(self): self.a=1; self.__b=2\n    def b(self): return self.__b\ns=S(); s.c=3",
        "print(s.a, s.b(), s.c)",
        "s.a=5\nclass T(S):\n    __slots__=('z',)\nt=T(); t.z=9",
        "print(s.a, t.z, t.b(), T.__slots__)",
    ],
    "subclass of builtins with overridden methods": [
        "class L(list):\n    def append(self, v): raise RuntimeError\n    def __iter__(self): return iter(['no'])\n"
        "class D(dict):\n    def __setitem__(self, k, v): raise RuntimeError\n    def items(self): return []\n"
        "l=L([1,2]); l.tag='t'; d=D(a=1); s=type('S',(str,),{})('txt'); s.k=1; i=type('I',(int,),{})(7); t=type('T',(tuple,),{})((1,[2]))",
        "print(len(l), l[0], l.tag, d['a'], s, s.k, i+1, t, type(s).__name__, dict.items(d))",
        "l[1]=l; print(l[1] is l)",
        "print(l[1] is l)",
    ],
    "init_subclass and set_name run once": [
        "log=[]\nclass Base:\n    registry=[]\n    def __init_subclass__(cls, **k): Base.registry.append(cls.__name__); log.append(k)\n"
        "class Desc:\n    def __set_name__(self, o, n): self.n=n; log.append(n)\n    def __get__(self, i, o): return self.n\n"
        "class P(Base, tag=1):\n    f=Desc()",
        "print(Base.registry, log, P.f, P().f)",
        "class Q(P, tag=2): pass",
        "print(Base.registry, log, Q.f, issubclass(Q, Base), Q.__mro__)",
    ],
    "metaclass runs once": [
        "made=[]\nclass M(type):\n    def __new__(m, n, b, d): made.append(n); return super().__new__(m, n, b, d)\n    def __call__(c, *a): made.append('call'); return super().__call__(*a)\n"
        "class A(metaclass=M): pass\na=A()",
        "print(made, type(A) is M, isinstance(a, A))",
        "class B(A): pass",
        "print(made)",
    ],
    "enums": [
        "import enum\nclass E(enum.Enum):\n    A=1\n    B=2\n    def f(self): return self.name\nclass F(enum.IntFlag):\n    R=1\n    W=2\nclass I(enum.IntEnum):\n    X=3\nclass S(enum.StrEnum):\n    Q='q'\ne=E.A; f=F.R|F.W; k={E.B: 1}",
        "print(e is E.A, f, f is (F.R|F.W), k[E.B], E(2).f(), I.X+1, S.Q+'x', list(E), isinstance(e, E))",
        "print(E.A.f(), E['B'] is E(2), F(3), e in E, len(E))\ntry: E.A=5\nexcept AttributeError: print('frozen')",
    ],
    "dataclasses": [
        "from dataclasses import dataclass, field, replace\n@dataclass(order=True, frozen=True)\nclass P:\n    x: int\n    y: list = field(default_factory=list, compare=False)\n@dataclass\nclass Q(P.__class__ and object):\n    z: int = 3\np=P(1,[2])\n@dataclass(slots=True, kw_only=True)\nclass R:\n    v: int\nr=R(v=4)",
        "print(p, replace(p, x=5), P(1) == p, hash(P(1)) == hash(p), Q(), r, {p: 1}[P(1)])",
        "p.y.append(3)\nprint(p, sorted([P(2), P(1)]))",
    ],
    "abstract classes and virtual subclasses": [
        "import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\n@A.register\nclass V: pass\nclass C(A):\n    def f(self): return 1",
        "print(isinstance(V(), A), C().f())\ntry: A()\nexcept TypeError: print('abstract')",
        "print(issubclass(V, A), A.__abstractmethods__)",
    ],
    "generic classes": [
        "from typing import Generic, TypeVar, NamedTuple, Protocol, runtime_checkable, NewType, TypedDict\nT=TypeVar('T'); N=TypeVar('N', bound=int)\nclass B(Generic[T]):\n    v: T\nb=B[int](); U=NewType('U', int)\nclass NT(NamedTuple):\n    a: int\n    b: str='x'\nn=NT(1)\n@runtime_checkable\nclass Pr(Protocol):\n    def go(self): ...\nclass TD(TypedDict):\n    a: int\nclass G:\n    def go(self): ...",
        "print(B.__parameters__ == (T,), B[str], n, n._replace(a=2), isinstance(G(), Pr), U(3), TD(a=1), N.__bound__)",
        "class C(B[T]): pass\nprint(C.__mro__[1] is B, C[int]().__class__ is C, type(b) is B, b.__orig_class__)",
    ],
    "functions": [
        "def outer():\n    n=0\n    def inc():\n        nonlocal n\n        n+=1\n        return n\n    def get(): return n\n    def fact(k): return 1 if k<2 else k*fact(k-1)\n    return inc, get, fact\ninc, get, fact = outer()\ndef kw(a, b=[], *c, d={}, **e): b.append(a); d[a]=1; return b, d\nkw.tag='t'\nlam=[lambda x, i=i: x+i for i in range(3)]",
        "inc(); inc(); print(get(), fact(5), kw(1), kw.tag, [f(1) for f in lam])",
        "inc(); print(get(), kw(2), kw.__defaults__, kw.__kwdefaults__, kw.__name__)",
        "K=3\ndef uses(): return K+helper()",
        "def helper(): return 10\nprint(uses())",
        "K=4; print(uses()); del K",
        "try: uses()\nexcept NameError as e: print(e)",
    ],
    "decorators and bound methods": [
        "import functools\ndef deco(f):\n    calls=[]\n    @functools.wraps(f)\n    def w(*a): calls.append(a); return f(*a)\n    w.calls=calls\n    return w\n@deco\ndef f(x): return x*2\nclass A:\n    n=0\n    def m(self): self.n+=1; return self.n\n    @classmethod\n    def c(cls): return cls.__name__\n    @staticmethod\n    def s(): return 's'\na=A(); bm=a.m; cm=A.c; f(1)",
        "f(2); print(f.calls, f.__wrapped__(3), bm(), a.n, cm(), A.s())",
        "print(bm(), a.n, bm.__self__ is a, f.calls)",
        "@functools.lru_cache(maxsize=3)\ndef cached(x, *, y=1): print('run', x); return x+y\ncached(1); cached(2, y=5)\n@functools.singledispatch\ndef sd(x): return 'obj'\n@sd.register\ndef _(x: int): return 'int'",
        "print(cached(1), cached(2, y=5), cached.cache_info().currsize, sd(1), sd('a'))",
        "cached.cache_clear(); print(cached(1), sd.dispatch(int)(2))",
    ],
    "recursive structures": [
        "l=[]; l.append(l); d={}; d['d']=d\nclass N: pass\na=N(); b=N(); a.o=b; b.o=a; t=([],); t[0].append(t)",
        "print(l[0] is l, d['d'] is d, a.o.o is a, b.o is a.o.o.o, t[0][0] is t)",
        "a.v=1; print(b.o.v)",
        "print(b.o.v, l is l[0][0])",
    ],
    "containers of the standard library": [
        "import collections as c\nx=c.OrderedDict(a=1); y=c.defaultdict(list); y['k'].append(x); z=c.deque([1,2],maxlen=2); w=c.Counter('aab'); v=c.ChainMap({'a':1},{'b':2}); dd=c.defaultdict(lambda: 7)",
        "x['b']=2; print(y['k'][0] is x, z, w, v['b'], dd['n'])",
        "z.append(9); print(x, dict(y), z, z.maxlen, dd)",
        "x.move_to_end('a'); print(list(x), v.maps)",
    ],
    "views and iterators": [
        "d={'a':1}; k=d.keys(); it=iter([1,2,3]); next(it); e=enumerate('abc'); next(e); z=zip([1,2],'ab'); r=reversed([1,2]); m=map(lambda v: v+1,[1,2]); f=filter(None,[0,3])",
        "d['b']=2; print(sorted(k), next(it), next(e), next(z), next(r), next(m), next(f))",
        "d['c']=3; print(sorted(k), list(it), list(e), list(z), list(r), list(m))",
    ],
    "weak references": [
        "import weakref\nclass W: pass\nw=W(); r=weakref.ref(w); wd=weakref.WeakValueDictionary(a=w); ws=weakref.WeakSet([w]); wk=weakref.WeakKeyDictionary({w: 1})",
        "print(r() is w, wd['a'] is w, w in ws, wk[w])",
        "del w\nimport gc; gc.collect(); print(r(), len(wd), len(ws), len(wk))",
        "print(r(), len(wd))",
    ],
    "exceptions": [
        "class X(Exception):\n    def __init__(self, a, b): super().__init__(a); self.b=b\nx=X(1,2)\ntry:\n    try: 1/0\n    except ZeroDivisionError as e: raise ValueError('v') from e\nexcept ValueError as e: y=e\ng=ExceptionGroup('g',[ValueError(1),x]); o=OSError(2,'no','file'); u=UnicodeDecodeError('utf8',b'x',0,1,'r')",
        "print(repr(x), x.b, x.args, repr(y.__cause__), g.exceptions[1] is x, o.filename, type(o).__name__, u.reason)",
        "import traceback\nprint(y.__traceback__ is not None, traceback.extract_tb(y.__traceback__)[-1].name)\ntry: raise x\nexcept X as e: print(e is x)",
    ],
    "numpy views": [
        "import numpy as np\na=np.arange(12.).reshape(3,4); v=a[1:]; t=a.T; r=a.ravel(); f=np.asfortranarray(a); o=np.array([{},1],dtype=object); ov=o[:1]; s=a[::2,::-1]",
        "v[0,0]=99; print(a[1,0], t[0,1], r[4], f[1,0])",
        "t[3,2]=-5; ov[0]['k']=1; s[0,0]=7; print(a, o[0], np.shares_memory(a, s))",
        "a[:]=0; print(v.sum(), t.sum(), s.sum(), r.sum(), v.base is a or v.base is a.base)",
        "big=np.zeros((300,300)); bv=big[10:20]; bf=big.T[5]",
        "bv[0,5]=1",
        "print(big.sum(), bf[10], bf.sum())",
        "big[10,5]=3; print(bv[0,5], bf[10])",
    ],
    "numpy kinds": [
        "import numpy as np\nxs=[np.float64(1.5), np.array(5), np.array(['a','bb']), np.array(['2020-01-01'],'M8[D]'), np.timedelta64(5,'s'), np.array([1+2j]), np.ma.array([1,2],mask=[0,1]), np.matrix([[1]]), np.rec.array([(1,'a')],dtype=[('x','i4'),('y','U1')]), np.array([True]), np.arange(4,dtype='>i2'), np.empty((0,2)), np.poly1d([1,2])]\nclass Info(np.ndarray): pass\nn=np.arange(3).view(Info); n.info='meta'; ro=np.arange(3); ro.flags.writeable=False; g=np.random.default_rng(3); g.random(); rs=np.random.RandomState(1)",
        "print([repr(x) for x in xs], n.info, type(n).__name__, ro.flags.writeable, g.random(), rs.rand())",
        "print(g.random(), rs.rand(), xs[8].x)",
        "n[0]=9; n.info='m2'",
        "print(n, n.info)",
    ],
    "pandas sharing": [
        "import pandas as pd, numpy as np\ndf=pd.DataFrame({'a':[1,2,3],'b':[1.,2,3],'s':['x','y','z']}); v=df[:]; s=df['a']; c=df.copy(); arr=df['b'].to_numpy(); d={'df':df}",
        "df.loc[0,'a']=50; print(v.a.tolist(), s.tolist(), c.a.tolist(), d['df'] is df)",
        "s.iloc[1]=60; print(df.a.tolist(), s.tolist(), v.a.tolist())",
        "df['n']=df.a*2; print(df.columns.tolist(), v.columns.tolist(), d['df'].shape)",
        "df.iloc[0,1]=-1; print(df.b.tolist(), v.b.tolist(), arr.tolist())",
        "df.index.name='i'; df2=df.set_index('s'); print(df2.index.name)",
        "df2.loc['x','a']=0; print(df2, df.a.tolist())",
        "gr=df.groupby('s'); cat=df.s.astype('category')",
        "print(gr.a.sum().tolist(), cat.cat.categories.tolist(), df.dtypes.astype(str).tolist())",
    ],
    "pandas kinds": [
        "import pandas as pd, numpy as np\ndf=pd.DataFrame({'t':pd.date_range('2024-01-01',periods=3,tz='UTC'),'c':pd.Categorical(['a','b','a'],ordered=True),'n':pd.array([1,None,3],'Int64'),'p':pd.period_range('2024',periods=3,freq='M'),'l':[[1],[2],[3]]},index=pd.MultiIndex.from_product([['k'],[1,2,3]],names=['x','y']))\ni=pd.interval_range(0,3); sp=pd.arrays.SparseArray([0,0,1]); td=pd.Timedelta('1h'); ts=pd.Timestamp('2024-01-01',tz='Europe/Paris')",
        "print(df, df.dtypes, i, sp, td, ts)",
        "df.loc[('k',2),'n']=9; df['l'].iloc[0].append(7)",
        "print(df, df.index.names, df.t.dt.tz)",
    ],
    "globals and friends": [
        "x=1; y=2\ndef f(): return sorted(k for k in globals() if k in ('x','y'))",
        "print(f())",
        "print(globals()['x'], 'y' in globals(), 'y' in vars(), 'y' in dir(), 'zz' in locals())",
        "exec('x=10'); print(eval('x+y'))",
        "ns={}\ntry: exec('print(y)', ns)\nexcept NameError: print('isolated')",
        "import __main__; print(__main__.x, getattr(__main__, 'y'))\nfrom __main__ import x as xx; print(xx)",
        "globals()['z']=5; del globals()['y']",
        "print(z)\ntry: y\nexcept NameError: print('gone')",
        "def k():\n    global x\n    del x\nk()",
        "try: x\nexcept NameError: print('gone')",
    ],
    "builtins": [
        "list=[1]; import builtins; builtins.extra=5; len=lambda v: 'mine'",
        "print(list, len([1]), extra)",
        "del list, len",
        "print(list('ab'), len('abc'), extra, __builtins__.len('a') if not isinstance(__builtins__, dict) else 1)",
    ],
    "scopes read lazily": [
        "base=3; data=[1,2,3]\nclass Base: pass",
        "class D(Base):\n    v=base\n    def m(self, d=data): return d\n    z=[base*i for i in data]\nprint(D.v, D().m() is data, D.z)",
        "async def co(): return base\nimport asyncio\nprint(await co())\ngen=(base*i for i in data)\nprint(list(gen), [base for _ in data], f'{base}', (lambda: base)())",
        "import threading\nout=[]\nth=threading.Thread(target=lambda: out.append(base)); th.start(); th.join(); print(out)\nmatch base:\n    case 3: print('three')\nbase+=1",
        "print(base)",
    ],
    "random streams": [
        "import random, numpy as np\nrandom.seed(1); np.random.seed(1); a=random.random(); b=np.random.rand(); r=random.Random(5); r.random()",
        "print(a, b, random.random(), np.random.rand(), r.random())",
        "print(random.random(), np.random.rand(2), r.random())\nfrom random import shuffle\nq=list(range(5)); shuffle(q); print(q)",
    ],
    "open files": [
        "open('in.txt','w').write('a\\nb\\nc\\n'); f=open('in.txt'); f.readline(); w=open('out.txt','w'); w.write('1'); ap=open('out2.txt','a'); ap.write('x'); rb=open('in.txt','rb'); rb.read(2); c=open('in.txt'); c.close()\nfor line in f: break",
        "print(f.readline(), rb.read(1), c.closed, c.name, c.mode, w.mode, ap.mode)\nw.write('2'); ap.write('y')",
        "w.close(); ap.close(); print(open('out.txt').read(), open('out2.txt').read(), f.read())",
        "rw=open('out.txt','w+'); rw.write('zz'); rw.seek(0)",
        "print(rw.read()); rw.write('q'); rw.seek(0)",
        "print(rw.read())",
    ],
    "locks and queues": [
        "import threading, queue, asyncio\nl=threading.Lock(); l.acquire(); rl=threading.RLock(); rl.acquire(); rl.acquire(); ev=threading.Event(); ev.set(); q=queue.Queue(); q.put(1); sq=queue.SimpleQueue(); sq.put(2); pq=queue.PriorityQueue(); pq.put((1,'a')); sem=threading.Semaphore(2); sem.acquire(); cond=threading.Condition(); bar=threading.Barrier(1); aq=asyncio.Queue(); aq.put_nowait(5); loc=threading.local(); loc.v=3",
        "print(l.locked(), ev.is_set(), q.get(), sq.get(), pq.get(), sem.acquire(False), sem.acquire(False), aq.get_nowait(), loc.v)\nrl.release(); rl.release()\ntry: rl.release()\nexcept RuntimeError: print('free')\nwith cond: cond.notify_all()\nprint(bar.wait())",
        "l.release(); print(l.locked(), q.empty(), q.unfinished_tasks)\nq.task_done(); q.join(); print('joined')",
    ],
    "sqlite": [
        "import sqlite3\nm=sqlite3.connect(':memory:'); m.execute('create table t(a)'); m.execute('insert into t values(1)'); m.row_factory=sqlite3.Row; d=sqlite3.connect('x.db'); d.execute('create table t(a)'); d.execute('insert into t values(2)'); d.commit(); cur=d.cursor(); row=m.execute('select a, 5 as b from t').fetchone()",
        "print(m.execute('select a from t').fetchone()['a'], d.execute('select * from t').fetchall(), row['b'], row.keys())\nd.execute('insert into t values(3)'); d.commit(); m.execute('insert into t values(9)')",
        "print(len(m.execute('select * from t').fetchall()), cur.execute('select * from t').fetchall())",
    ],
    "modules of the user": [
        "open('mod.py','w').write('print(\"ran\")\\nitems=[]\\nlevel=0\\nclass Box:\\n    seen=[]\\n    def me(self): return Box\\ndef bump():\\n    global level\\n    level+=1\\n    return level\\n')\nimport mod\nfrom mod import bump, Box\nmod.items.append(1); b=Box(); it=mod.items",
        "print(bump(), mod.level, mod.items is it, b.me() is Box, type(b) is mod.Box, bump is mod.bump)",
        "import mod\nBox.seen.append(2); it.append(5); print(mod.items, mod.level, Box.seen, mod.Box is Box)",
        "open('mod.py','a').write('level=100\\n')\nimport mod; print(mod.level)",
        "import importlib; importlib.reload(mod); print(mod.level, isinstance(b, mod.Box), b.seen, bump is mod.bump)",
        "print(mod.level, isinstance(b, mod.Box), b.seen, bump())",
    ],
    "objects tied to the namespace": [
        "g=globals(); v=3",
        "print(g is globals(), g['v'])",
        "g['v']=4",
        "print(v)",
    ],
    "matplotlib": [
        "import matplotlib.pyplot as plt\nfig, ax = plt.subplots(); line,=ax.plot([1,2],label='l'); plt.rcParams['lines.linewidth']=5; fig2=plt.figure()",
        "print(plt.gcf() is fig2, fig.axes[0] is ax, ax.lines[0] is line, plt.rcParams['lines.linewidth'], plt.get_fignums())",
        "plt.figure(fig.number); plt.title('T'); print(ax.get_title(), plt.gca() is ax)",
        "plt.close(fig2); print(ax.get_title(), plt.get_fignums())",
    ],
    "scikit-learn": [
        "import numpy as np\nfrom sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler, FunctionTransformer\nfrom sklearn.linear_model import Ridge\nfrom sklearn.base import BaseEstimator\nrng=np.random.RandomState(0); X=rng.rand(50,3); y=X.sum(1)\ndef half(a): return a/2\nclass Est(BaseEstimator):\n    def __init__(self, k=1): self.k=k\n    def fit(self, X): self.m_=X.mean(); return self\np=make_pipeline(FunctionTransformer(half), StandardScaler(), Ridge()).fit(X,y); e=Est(3).fit(X)",
        "print(round(p.score(X,y),6), p[0].func is half, e, e.m_ == X.mean(), rng.rand())",
        "p[-1].coef_[0]=0; print(p.predict(X)[:2], rng.rand())",
        "print(p[-1].coef_, rng.rand())",
    ],
    "others": [
        "import networkx as nx, sympy as sp, datetime, decimal, fractions, uuid, pathlib, re, types, string\ng=nx.path_graph(3); x=sp.symbols('x'); e=sp.sin(x)**2; rx=re.compile('(a)(?P<n>b)?'); m=rx.search('zab'); ns=types.SimpleNamespace(a=[1]); mp=types.MappingProxyType({'k':1}); mv=memoryview(bytearray(b'abc')); tz=datetime.timezone.utc; tpl=string.Template('$a'); cp=types.CodeType; bm=[].append; sl=slice(1,2); rg=range(3); el=...; ni=NotImplemented; cx=1j",
        "g.add_edge(2,3); print(list(g.edges), sp.diff(e,x), m.group('n'), m.span(), ns, mp['k'], bytes(mv), rx.pattern, tpl.substitute(a=1), cp is types.CodeType, sl, rg, el, ni, cx)",
        "mv[0]=65; ns.a.append(2)",
        "print(mv.obj, ns, x == sp.symbols('x'), m.string)",
    ],
    "thread subclass": [
        "import threading\nclass T(threading.Thread):\n    def __init__(self, k): super().__init__(daemon=True); self.k=k; self.out=[]\n    def run(self): self.out.append(self.k)\nt=T(3); t.start(); t.join(); u=T(4)",
        "print(t.out, t.is_alive(), u.k)\nu.start(); u.join(); print(u.out)",
        "print(u.out, u.is_alive())",
    ],
    "shell list": ["files = !printf 'a\\nb'\n", "print(files, type(files).__name__, files.n)"],
    "context manager": [
        "import contextlib\nlog=[]\n@contextlib.contextmanager\ndef cm():\n    log.append('in')\n    try: yield 5\n    finally: log.append('out')\nc=cm(); v=c.__enter__()",
        "print(v, log); c.__exit__(None,None,None)",
        "print(log)",
    ],
    "class decorator and registry": [
        "REG={}\ndef reg(cls): REG[cls.__name__]=cls; cls.extra=len(REG); return cls\n@reg\nclass A: pass\n@reg\nclass B(A):\n    def __init__(self): super().__init__(); self.z=REG",
        "b=B(); print(REG['B'] is B, B.extra, b.z is REG, B.__mro__[1] is A)",
        "REG['C']=1; print(b.z, A.extra)",
    ],
    "multiple inheritance": [
        "class M1:\n    def f(self): return ['M1']\nclass M2:\n    def f(self): return ['M2']\nclass D(M1, M2):\n    def f(self): return ['D']+super().f()\nclass E(D, dict): pass\ne=E(a=1); e.t=5",
        "print(e.f(), e, e.t, E.__mro__)",
        "M1.f=lambda self: ['patched']; print(e.f())",
        "print(e.f())",
    ],
    "class attribute mutated via instance": [
        "class C:\n    n=0\n    items=[]\n    def __init__(self): type(self).n+=1; self.items.append(self)\na=C(); b=C()",
        "c=C(); print(C.n, len(C.items), C.items[0] is a)",
        "print(C.n, C.items[2] is c, a.items is C.items)",
    ],
    "monkeypatched method": [
        "class C:\n    def f(self): return 1\nc=C()\ndef g(self): return 2",
        "C.f=g; print(c.f(), C.f is g)",
        "print(c.f(), C.f is g)",
        "c.f=lambda: 3; print(c.f())",
        "print(c.f(), C().f())",
        "del c.f; print(c.f())",
    ],
    "getattr class": [
        "class Lazy:\n    def __init__(self): self._d={}\n    def __getattr__(self, n):\n        if n.startswith('__'): raise AttributeError(n)\n        return self._d.setdefault(n, [])\nl=Lazy(); l.a.append(1)",
        "print(l.a, l.b, l._d)",
        "l.b.append(2); print(l._d)",
    ],
    "operator heavy": [
        "import numpy as np\nclass V:\n    def __init__(self, a): self.a=np.asarray(a)\n    def __eq__(self, o): return V(self.a==o.a)\n    def __bool__(self): raise ValueError\n    def __array__(self, *a, **k): return self.a\n    def __len__(self): return 3\n    def __getitem__(self, i): return self.a[i]\nv=V([1,2,3])",
        "print(v[1], len(v), np.asarray(v))",
        "v.a[0]=9; print(v.a)",
    ],
    "closures over loop": [
        "fs=[]\nfor i in range(3):\n    def f(x, i=i): return x+i\n    fs.append(f)\ngs=[lambda: i for i in range(3)]\nhs={k: (lambda k=k: k) for k in 'ab'}",
        "print([f(1) for f in fs], [g() for g in gs], [h() for h in hs.values()], i)",
        "i=10; print(fs[2] is f, [g() for g in gs])",
    ],
    "string keyed functions": [
        "def a(): return 'a'\ndef b(): return a()\ntable={'a':a,'b':b}",
        "def a(): return 'new'",
        "print(table['a'](), table['b'](), table['a'] is a)",
    ],
    "import forms": [
        "import os.path as p, json as j, collections.abc\nfrom math import *\nfrom os import getcwd as gc2, path\nimport xml.dom.minidom",
        "print(p.join('a','b'), j.dumps(1), collections.abc.Mapping.__name__, floor(2.5), path is p, xml.dom.minidom.Document.__name__)",
        "import xml; print(hasattr(xml,'dom'))",
    ],
    "numpy random generator shared": [
        "import numpy as np\nrng=np.random.default_rng(1); d={'r':rng}; bg=rng.bit_generator; c=np.random.RandomState(2); ss=np.random.SeedSequence(5); kids=ss.spawn(2)",
        "print(rng.random(), d['r'] is rng, bg is rng.bit_generator, c.rand(), kids[0].entropy)",
        "print(d['r'].random(), c.rand(), ss.n_children_spawned)",
    ],
    "pandas mutate many": [
        "import pandas as pd, numpy as np\nrng=np.random.default_rng(0)\ndf=pd.DataFrame({'k':list('abcab'),'v':rng.random(5)}); idx=df.index; col=df.columns; g=df.groupby('k'); d={k:x for k,x in g}; p=df.pivot_table(index='k',values='v'); m=df.merge(p,on='k'); ser=df.set_index('k')['v']",
        "df['w']=df.v*2; df.loc[5]=['z',1,2]; print(df.round(3), d['a'].round(3), m.round(3))",
        "df.drop(columns='v', inplace=True); df.rename(columns={'w':'W'}, inplace=True); print(df.round(3), ser.round(3), g.ngroups, col.tolist(), len(idx))",
        "df=df.sort_values('W', ascending=False).reset_index(drop=True); df.index.name='n'; print(df.round(3))",
        "print(df.round(3), df.index.name, p.round(3))",
    ],
    "datetime index": [
        "import pandas as pd\nts=pd.Series(range(48), index=pd.date_range('2024-01-01', periods=48, freq='h', tz='UTC')); r=ts.resample('D').sum(); w=ts.rolling('3h')",
        "print(r, ts.index.freq, w.sum().iloc[5])",
        "ts.iloc[0]=100; print(ts.resample('D').sum(), ts.index.freq)",
    ],
    "polars": [
        "import polars as pl\ndf=pl.DataFrame({'a':[1,2,3],'b':['x','y','z']}); lf=df.lazy().filter(pl.col('a')>1); s=df['a']",
        "print(df.with_columns(c=pl.col('a')*2), lf.collect(), s.sum())",
        "df=df.with_columns(d=pl.lit(1)); df[0,'a']=50; print(df, s.to_list())",
        "print(df, s.to_list())",
    ],
    "sympy": [
        "import sympy as sp\nx,y=sp.symbols('x y'); e=x**2+sp.sin(y); f=sp.lambdify(x, x**2); M=sp.Matrix([[x,1],[2,y]]); F=sp.Function('F')",
        "print(e.diff(x), f(3), M.det(), F(x).diff(x), sp.solve(x**2-4, x))",
        "M[0,0]=5; print(M, sp.symbols('x')==x)",
    ],
    "networkx": [
        "import networkx as nx\nG=nx.Graph(); G.add_edge(1,2,w=3); v=G.nodes; H=G.subgraph([1,2]); e=G.edges(data=True)",
        "G.add_node(9); print(list(v), list(e), list(H.nodes))",
        "print(nx.shortest_path(G,1,2), list(v))",
    ],
    "exceptions across cells": [
        "import traceback\ntry: {}['k']\nexcept KeyError as err: saved=err\nclass My(Exception):\n    def __init__(self, code, *, extra): self.code=code; self.extra=extra; super().__init__(f'c{code}')\nm=My(3, extra=[1])",
        "print(repr(saved), traceback.format_exception_only(saved), m.code, m.extra, str(m))",
        "try: raise m from saved\nexcept My as e2: print(e2 is m, e2.__cause__ is saved)",
        "print(m.__cause__ is saved)",
    ],
    "sys hooks": [
        "import sys\ndef hook(*a): print('hooked')\nsys.excepthook=hook; sys.my_attr=[1]",
        "print(sys.excepthook is hook, sys.my_attr); sys.my_attr.append(2)",
        "print(sys.my_attr)",
    ],
    "from random import": [
        "from random import seed, random, shuffle\nfrom numpy.random import seed as nseed, rand\nseed(1); nseed(1); a=random(); b=rand()",
        "print(random(), rand())",
        "import random as R, numpy as np\nprint(R.random(), np.random.rand())",
        "seed(1); nseed(1); print(random()==a, rand()==b)",
    ],
    "sys path alias": [
        "import sys, os\np=sys.path; env=os.environ; mods=sys.modules",
        "p.append('/zz'); env['QQ']='1'; print(p is sys.path, env is os.environ, mods is sys.modules)",
        "print('/zz' in sys.path, os.environ['QQ'])",
    ],
    "main module": [
        "import __main__, sys\nv=1\n__main__.w=2",
        "print(w, __main__.v, sys.modules['__main__'] is __main__)\nsetattr(__main__,'q',3)",
        "print(q, hasattr(__main__,'nope'), __name__)\ndelattr(__main__,'q')",
        "try: q\nexcept NameError: print('gone')",
    ],
    "type hints": [
        "from typing import get_type_hints\nclass P: ...\ndef f(a: 'P', b: int) -> 'list[P]': ...\nclass D:\n    x: 'P'",
        "print(get_type_hints(f)['a'] is P, get_type_hints(D)['x'] is P)",
        "import dataclasses\n@dataclasses.dataclass\nclass E:\n    p: 'P'\n    q: int = 3\nprint(E(1))",
        "print(E(2), dataclasses.fields(E)[0].type)",
    ],
    "pickle itself": [
        "import pickle, copy\nclass A:\n    def __init__(self): self.v=[1]\n    def __reduce__(self): return (A, ())\na=A(); a.v.append(2)\ns=pickle.dumps(a)",
        "b=pickle.loads(s); print(a.v, b.v, type(b) is A); c=copy.deepcopy({'k':a.v}); print(c)",
        "print(a.v, b.v)",
    ],
    "unittest": [
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1,1)",
        "import io\nr=unittest.main(argv=[''],exit=False,testRunner=unittest.TextTestRunner(stream=io.StringIO())).result; print(r.testsRun, r.wasSuccessful())",
    ],
    "asyncio": [
        "import asyncio\nq=asyncio.Queue(); ev=asyncio.Event(); lock=asyncio.Lock()\nasync def put(n):\n    await q.put(n); ev.set()\nawait put(1)",
        "print(await q.get(), ev.is_set())\nasync with lock: print('locked')",
        "async def agen():\n    for i in range(3): yield i\nprint([i async for i in agen()])\nawait asyncio.gather(put(5), put(6)); print(q.qsize())",
        "print(await q.get(), q.qsize())",
    ],
    "singledispatch methods": [
        "import functools\nclass A:\n    @functools.singledispatchmethod\n    def f(self, x): return 'o'\n    @f.register\n    def _(self, x: int): return 'i'\n    @functools.cached_property\n    def cp(self): return [1]\na=A(); a.cp",
        "print(a.f(1), a.f(''), a.cp)\na.cp.append(2)\n@A.f.register\ndef _(self, x: str): return 's'",
        "print(a.f(''), a.cp)",
    ],
    "numbers which are not equal to themselves": [
        "import math, json, decimal\nnan=float('nan'); nl=[nan, -nan]; nd={nan: 1}; two=[float('nan')]*2; D=decimal.Decimal('NaN'); S=decimal.Decimal('sNaN'); ld=[D, S]; c=complex('nan'); lc={c: 1}; m=math.nan; j=json.loads('[NaN, 1]')",
        "print(nan in nl, nan in nd, two[0] is two[1], nl[0] is two[0], D in ld, ld[1] is S, c in lc, m is math.nan, j[0] in j, math.copysign(1, nl[1]))",
        "nl.append(two[0])",
        "print(nan in nl, two[1] in nl, nl.index(nan), nd[nan])",
        "import numpy as np, pandas as pd; nn=np.nan; na=[nn, float('nan')]; t=(nn,); df=pd.DataFrame({'a': ['x', np.nan, None]}, dtype=object)",
        "print(nn in na, nn is np.nan, na[1] is np.nan, t[0] is nn, df.a[1] is np.nan, df.a[2])",
    ],
    "views older than the ban on writing": [
        "import numpy as np\na=np.arange(5); v=a[1:]; a.flags.writeable=False; w=a[2:]; big=np.zeros(100_000); bv=big[::2]; big.flags.writeable=False; f=np.zeros((3, 4), order='F'); fv=f[1]; f.flags.writeable=False",
        "v[0]=9; bv[1]=3; fv[2]=8; print(a, big[2], a.flags.writeable, w.flags.writeable, f.sum())",
        "v[1]=7; bv[2]=4; print(a, w, big[4], a.flags.writeable, v.flags.writeable, np.shares_memory(a, v))",
    ],
    "statistics of caches": [
        "import functools\n@functools.lru_cache(maxsize=2)\ndef g(x): return x\nfor i in (1, 2, 3, 1): g(i)\n@functools.lru_cache(typed=True)\ndef h(x, *, k=1): return [x, k]\nh(1, k=2); h(1.0, k=2); h(2); h(2)\n@functools.lru_cache(maxsize=0)\ndef z(x): return x\nz(1); z(1)\n@functools.cache\ndef e(x): return 1/x\nfor i in (1, 0, 0, 1):\n    try: e(i)\n    except ZeroDivisionError: pass\nfor i in range(20_000): e(1)",
        "print(g.cache_info(), h.cache_info(), z.cache_info(), e.cache_info())",
        "g(3); g(1); g(4); h(2); print(g.cache_info(), h.cache_info())",
        "g(3); g(1); print(g.cache_info())",
    ],
    "options of SQLite connections": [
        "import sqlite3; con=sqlite3.connect('q.db', timeout=30); con.row_factory=lambda c, r: {'n': r[0]}; mem=sqlite3.connect(':memory:'); mem.row_factory=sqlite3.Row\nfor pragma in ('foreign_keys=on', 'synchronous=off', 'cache_size=77'): con.execute('pragma '+pragma)\n_=mem.execute('pragma recursive_triggers=on'); _=None",
        "print([con.execute('pragma '+n).fetchone() for n in ('foreign_keys', 'synchronous', 'cache_size', 'busy_timeout')], tuple(mem.execute('pragma recursive_triggers').fetchone()))\n_=con.execute('create table t(a)'); _=con.execute('insert into t values(1)'); con.commit()",
        "print(con.execute('select * from t').fetchall(), con.execute('pragma foreign_keys').fetchone())",
    ],
    "the system's randomness": [
        "import random; sr=random.SystemRandom(); srs=[sr]\nclass SR(random.SystemRandom): pass\ns2=SR(); s2.tag=[1]",
        "print(0 <= sr.random() < 1, srs[0] is sr, s2.tag, s2.randint(3, 3), type(s2) is SR)",
    ],
    "big mix": [
        "import numpy as np, pandas as pd\nA=np.arange(100_000.).reshape(100,-1); B=A[::2]; df=pd.DataFrame(A[:, :3].copy(), columns=list('xyz')); d={'A':A,'B':B,'df':df}; L=[d, (A,)]",
        "B[0,0]=-1; d['df'].iloc[0,0]=7; print(A[0,0], df.iloc[0,0], L[0]['B'] is B, L[1][0] is A)",
        "A*=2; print(B[0,0], L[1][0][0,1], df.x.iloc[0])",
        "df2=df.T; A=A+1; print(A[0,0], B[0,0], d['A'][0,0])",
        "print(d['A'] is A, L[1][0] is d['A'], np.shares_memory(B, d['A']))",
    ],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_one_process(program, warm_notebook):
    warm_notebook.assert_like_one_process(PROGRAMS[program])


@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p not in ("scikit-learn", "others")][::3]
)
def test_as_in_one_process_without_preloaded_libraries(program, engines, tmp_path):
    from .harness import Notebook

    Notebook(engines("bare"), tmp_path).assert_like_one_process(PROGRAMS[program])

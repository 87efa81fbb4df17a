"""A matrix of objects made in one cell and looked at in the next.

Each row is restored right, or reported lost at once and refused on use. Nothing
may be silently wrong, and nothing may cost another object.
"""

import re

import pytest

# (name, statements which bind x, expression over x which holds in the same process)
OBJECTS = [
    (
        "ctypes bytes",
        "import ctypes; x=(ctypes.c_ubyte*5000)(7); y=(ctypes.c_ubyte*100000)(9)",
        "type(x) is ctypes.c_ubyte*5000 and x[0]==7 and y[0]==9 and type(y) is ctypes.c_ubyte*100000",
    ),
    ("ellipsis", "x=...", "x is ..."),
    ("notimplemented", "x=NotImplemented", "x is NotImplemented"),
    ("complex", "x=1+2j", "x==1+2j"),
    ("frozenset of tuples", "x=frozenset([(1,2),(3,)])", "(3,) in x and len(x)==2"),
    ("large int", "x=7**500", "x==7**500"),
    ("surrogate text", "x='a\\ud800b'", "len(x)==3 and x[1]=='\\ud800'"),
    ("bytearray", "x=bytearray(b'abc')", "x.pop()==99 and x==b'ab'"),
    ("nan", "x=float('nan')", "x!=x"),
    ("range iterator", "x=iter(range(5)); next(x)", "next(x)==1"),
    ("dict iterator", "x=iter({1:2,3:4}); next(x)", "next(x)==3"),
    ("string method", "x='ab'.upper", "x()=='AB'"),
    ("method descriptor", "x=str.upper", "x('a')=='A'"),
    ("slot wrapper", "x=int.__add__", "x(1,2)==3"),
    ("method wrapper", "x=(5).__add__", "x(1)==6"),
    ("class method of C type", "x=dict.fromkeys", "x('a')=={'a': None}"),
    (
        "getset descriptor",
        "import types; x=types.FunctionType.__code__",
        "type(x).__name__=='getset_descriptor'",
    ),
    (
        "member descriptor",
        "class A:\n  __slots__=('q',)\nx=A.q; a=A(); a.q=4",
        "x.__get__(a)==4 and x is A.q",
    ),
    ("builtin function", "x=len", "x is len"),
    ("type of None", "x=type(None)", "x is type(None)"),
    ("function type", "import types; x=types.FunctionType", "x is types.FunctionType"),
    ("generic alias", "x=list[int]", "x==list[int]"),
    ("union", "x=int|str", "x==int|str"),
    (
        "typing alias",
        "import typing; x=typing.Dict[str,typing.List[int]]",
        "x==typing.Dict[str,typing.List[int]]",
    ),
    (
        "callable alias",
        "import collections.abc as c; x=c.Callable[[int],str]",
        "x==c.Callable[[int],str]",
    ),
    ("code object", "x=compile('1+1','f','eval')", "eval(x)==2"),
    (
        "operator getters",
        "import operator as o; x=[o.itemgetter(1),o.attrgetter('real'),o.methodcaller('upper')]",
        "x[0]([1,2])==2 and x[1](3)==3 and x[2]('a')=='A'",
    ),
    (
        "partial of itself",
        "import functools; d={}; x=functools.partial(d.get,'k'); d['k']=x",
        "x() is x",
    ),
    (
        "partialmethod",
        "import functools\nclass A:\n  def f(self,a,b): return a+b\n  g=functools.partialmethod(f,1)\nx=A()",
        "x.g(2)==3",
    ),
    (
        "cached property",
        "import functools\nclass A:\n  @functools.cached_property\n  def p(self): return object()\nx=A(); q=x.p",
        "x.p is q",
    ),
    (
        "total ordering",
        "import functools\n@functools.total_ordering\nclass A:\n  def __init__(s,v): s.v=v\n  def __eq__(s,o): return s.v==o.v\n  def __lt__(s,o): return s.v<o.v\nx=A(1)",
        "x<=A(2) and not x>A(1)",
    ),
    ("cmp_to_key", "import functools; K=functools.cmp_to_key(lambda a,b: b-a); x=K(3)", "x<K(2)"),
    (
        "contextmanager",
        "import contextlib\n@contextlib.contextmanager\ndef x():\n  yield 5",
        "[v for v in [x().__enter__()]]==[5]",
    ),
    (
        "exit stack",
        "import contextlib; log=[]; x=contextlib.ExitStack(); x.callback(log.append,1)",
        "x.close() is None and log==[1]",
    ),
    ("io text", "import io; x=io.StringIO('a\\nb'); x.readline()", "x.read()=='b'"),
    ("io bytes", "import io; x=io.BytesIO(b'abc'); x.read(1)", "x.read()==b'bc'"),
    (
        "text over bytes",
        "import io; b=io.BytesIO(); x=io.TextIOWrapper(b); x.write('hi'); x.flush()",
        "b.getvalue()==b'hi'",
    ),
    ("array", "import array; x=array.array('d',[1.,2.])", "x.tolist()==[1.,2.]"),
    ("struct", "import struct; x=struct.Struct('>I')", "x.unpack(b'\\0\\0\\0\\1')==(1,)"),
    ("heap", "import heapq; x=[3,1,2]; heapq.heapify(x)", "heapq.heappop(x)==1"),
    (
        "decimal context",
        "import decimal; x=decimal.Context(prec=3)",
        "x.divide(1,3)==decimal.Decimal('0.333')",
    ),
    (
        "datetime kinds",
        "import datetime as d; x=(d.date(2024,1,1),d.time(1),d.timedelta(1),d.datetime(2024,1,1,tzinfo=d.timezone(d.timedelta(hours=2))))",
        "x[3].utcoffset()==d.timedelta(hours=2) and x[0].year==2024",
    ),
    ("zoneinfo", "import zoneinfo; x=zoneinfo.ZoneInfo('UTC')", "x is zoneinfo.ZoneInfo('UTC')"),
    (
        "ip address",
        "import ipaddress; x=ipaddress.ip_network('10.0.0.0/8')",
        "x.num_addresses==2**24",
    ),
    ("uuid", "import uuid; x=uuid.UUID(int=5)", "x.int==5"),
    ("template", "import string; x=string.Template('$a')", "x.substitute(a=1)=='1'"),
    ("formatter", "import string; x=string.Formatter()", "x.format('{}',1)=='1'"),
    (
        "configparser",
        "import configparser; x=configparser.ConfigParser(); x['s']={'a':'1'}",
        "x['s']['a']=='1'",
    ),
    (
        "argparse",
        "import argparse; x=argparse.ArgumentParser(); x.add_argument('-a',type=lambda s: int(s)+1)",
        "x.parse_args(['-a','1']).a==2",
    ),
    (
        "subparsers",
        "import argparse; x=argparse.ArgumentParser(); s=x.add_subparsers(dest='c'); s.add_parser('go')",
        "x.parse_args(['go']).c=='go'",
    ),
    ("csv dialect", "import csv; x=csv.excel()", "x.delimiter==','"),
    ("csv reader", "import csv; x=csv.reader(['a,b','c,d']); next(x)", "next(x)==['c','d']"),
    (
        "csv writer",
        "import csv,io; b=io.StringIO(); x=csv.writer(b)",
        "x.writerow([1]) and b.getvalue().strip()=='1'",
    ),
    ("json encoder", "import json; x=json.JSONEncoder(indent=1)", "x.encode([1])=='[\\n 1\\n]'"),
    (
        "json decoder",
        "import json; x=json.JSONDecoder(object_hook=lambda d: 5)",
        "x.decode('{}')==5",
    ),
    ("pickler", "import pickle,io; x=pickle.Pickler(io.BytesIO())", "x.dump(1) is None"),
    (
        "hash",
        "import hashlib; x=hashlib.sha256(b'a'); x.update(b'b')",
        "x.hexdigest()==hashlib.sha256(b'ab').hexdigest()",
    ),
    ("hmac", "import hmac; x=hmac.new(b'k',b'm','sha256')", "len(x.hexdigest())==64"),
    ("zlib", "import zlib; x=zlib.decompressobj()", "x.decompress(zlib.compress(b'a'))==b'a'"),
    (
        "incremental decoder",
        "import codecs; x=codecs.getincrementaldecoder('utf8')(); x.decode(b'\\xc3')",
        "x.decode(b'\\xa9')=='é'",
    ),
    ("difflib", "import difflib; x=difflib.SequenceMatcher(None,'ab','ac')", "x.ratio()==0.5"),
    ("textwrap", "import textwrap; x=textwrap.TextWrapper(width=3)", "x.wrap('a bc d')"),
    (
        "xml",
        "import xml.etree.ElementTree as E; x=E.fromstring('<a q=\"1\"><b/></a>')",
        "x.get('q')=='1' and x[0].tag=='b'",
    ),
    (
        "xml tree",
        "import xml.etree.ElementTree as E; x=E.ElementTree(E.Element('r'))",
        "x.getroot().tag=='r'",
    ),
    (
        "minidom",
        "import xml.dom.minidom as m; x=m.parseString('<a><b/></a>')",
        "x.documentElement.tagName=='a'",
    ),
    (
        "email",
        "import email.message as e; x=e.EmailMessage(); x['To']='a@b'; x.set_content('hi')",
        "x['To']=='a@b' and x.get_content()=='hi\\n'",
    ),
    ("http cookie", "import http.cookies as h; x=h.SimpleCookie('a=1')", "x['a'].value=='1'"),
    ("cookie jar", "import http.cookiejar as h; x=h.CookieJar()", "len(x)==0"),
    (
        "url request",
        "import urllib.request as u; x=u.Request('http://a/')",
        "x.full_url=='http://a/'",
    ),
    ("opener", "import urllib.request as u; x=u.build_opener()", "len(x.handlers)>3"),
    ("parse result", "import urllib.parse as u; x=u.urlparse('http://a/b')", "x.path=='/b'"),
    ("calendar", "import calendar; x=calendar.Calendar()", "next(x.iterweekdays())==0"),
    (
        "locale aware",
        "import calendar; x=calendar.TextCalendar()",
        "'2024' in x.formatmonth(2024,1)",
    ),
    ("timeit", "import timeit; x=timeit.Timer('1+1')", "x.timeit(1)>=0"),
    ("scheduler", "import sched; x=sched.scheduler(); x.enter(0,1,print,())", "len(x.queue)==1"),
    (
        "tempdir",
        "import tempfile; x=tempfile.TemporaryDirectory(); open(x.name+'/f','w').write('q')",
        "open(x.name+'/f').read()=='q' and x.cleanup() is None",
    ),
    (
        "named tempfile",
        "import tempfile; x=tempfile.NamedTemporaryFile('w+'); x.write('q'); x.flush()",
        "open(x.name).read()=='q'",
    ),
    (
        "spooled tempfile",
        "import tempfile; x=tempfile.SpooledTemporaryFile(); x.write(b'q'); x.seek(0)",
        "x.read()==b'q'",
    ),
    (
        "zipfile",
        "import zipfile; z=zipfile.ZipFile('q.zip','w'); z.writestr('a','b'); z.close(); x=zipfile.ZipFile('q.zip')",
        "x.read('a')==b'b'",
    ),
    (
        "tarfile",
        "import tarfile; t=tarfile.open('q.tar','w'); t.close(); x=tarfile.open('q.tar')",
        "x.getnames()==[]",
    ),
    (
        "gzip",
        "import gzip; g=gzip.open('q.gz','w'); g.write(b'ab'); g.close(); x=gzip.open('q.gz'); x.read(1)",
        "x.read(1)==b'b'",
    ),
    ("shelve", "import shelve; x=shelve.open('sh'); x['a']=1", "x['a']==1"),
    (
        "dir entry",
        "import os; open('de','w').close(); x=next(e for e in os.scandir('.') if e.name=='de')",
        "x.name=='de'",
    ),
    ("stat", "import os; x=os.stat('.')", "x.st_mode>0"),
    ("environ", "import os; x=os.environ", "x is os.environ"),
    ("devnull", "import os; x=open(os.devnull,'w')", "x.write('a')==1"),
    ("stdout", "import sys; x=sys.stdout", "x is sys.stdout"),
    ("pipe end", "import os; r,w=os.pipe(); x=os.fdopen(w,'w')", "x.write('a')==1"),
    ("socket", "import socket; x=socket.socket()", "x.fileno()>0"),
    ("socketpair", "import socket; x,y=socket.socketpair()", "x.send(b'a')==1"),
    ("ssl context", "import ssl; x=ssl.create_default_context()", "x.check_hostname"),
    ("selector", "import selectors; x=selectors.DefaultSelector()", "x.get_map() is not None"),
    (
        "thread finished",
        "import threading; x=threading.Thread(target=int,name='tt'); x.start(); x.join()",
        "not x.is_alive() and x.name=='tt' and x.ident and x.join() is None",
    ),
    (
        "thread unstarted",
        "import threading; out=[]; x=threading.Thread(target=out.append,args=(1,))",
        "(x.start(), x.join(), out)[2]==[1]",
    ),
    (
        "thread running",
        "import threading,time; x=threading.Thread(target=time.sleep,args=(.3,),daemon=True); x.start()",
        "x.is_alive()",
    ),
    ("timer", "import threading; x=threading.Timer(9,print)", "x.interval==9"),
    (
        "executor",
        "import concurrent.futures as c; x=c.ThreadPoolExecutor(2); x.submit(int).result()",
        "x.submit(pow,2,3).result()==8",
    ),
    (
        "future done",
        "import concurrent.futures as c; x=c.Future(); x.set_result(5)",
        "x.result()==5 and x.done()",
    ),
    (
        "future failed",
        "import concurrent.futures as c; x=c.Future(); x.set_exception(KeyError(1))",
        "type(x.exception()) is KeyError",
    ),
    ("future pending", "import concurrent.futures as c; x=c.Future()", "not x.done()"),
    ("process", "import subprocess; x=subprocess.Popen(['sleep','5'])", "x.poll() is None"),
    (
        "completed process",
        "import subprocess; x=subprocess.run(['echo','a'],capture_output=True)",
        "x.stdout==b'a\\n'",
    ),
    ("mp queue", "import multiprocessing as m; x=m.Queue()", "x.empty()"),
    ("mp lock", "import multiprocessing as m; x=m.Lock()", "x.acquire()"),
    ("asyncio lock", "import asyncio; x=asyncio.Lock()", "not x.locked()"),
    ("asyncio event", "import asyncio; x=asyncio.Event(); x.set()", "x.is_set()"),
    ("asyncio loop", "import asyncio; x=asyncio.new_event_loop()", "not x.is_running()"),
    ("coroutine", "async def c(): return 1\nx=c()", "x.cr_frame is not None"),
    ("async generator", "async def c(): yield 1\nx=c()", "x.ag_frame is not None"),
    ("frame", "import sys; x=sys._getframe()", "x.f_lineno>0"),
    (
        "context variable",
        "import contextvars; x=contextvars.ContextVar('v',default=1); x.set(2)",
        "x.get()==2",
    ),
    (
        "context",
        "import contextvars; v=contextvars.ContextVar('v'); v.set(3); x=contextvars.copy_context()",
        "x[v]==3",
    ),
    ("token", "import contextvars; v=contextvars.ContextVar('v'); x=v.set(3)", "x.var is v"),
    (
        "weak method",
        "import weakref\nclass A:\n  def f(s): return 1\na=A(); x=weakref.WeakMethod(a.f)",
        "x()()==1",
    ),
    ("weak proxy", "import weakref\nclass A:\n  v=1\na=A(); x=weakref.proxy(a)", "x.v==1"),
    ("finalizer", "import weakref\nclass A: pass\na=A(); x=weakref.finalize(a,print)", "x.alive"),
    ("mmap anonymous", "import mmap; x=mmap.mmap(-1,100); x[0]=65", "x[0]==65"),
    (
        "mmap file",
        "import mmap; open('mm','wb').write(b'a'*100); f=open('mm','r+b'); x=mmap.mmap(f.fileno(),0)",
        "x[0]==97",
    ),
    ("ctypes int", "import ctypes; x=ctypes.c_int(4)", "x.value==4"),
    ("ctypes array", "import ctypes; x=(ctypes.c_int*3)(1,2,3)", "list(x)==[1,2,3]"),
    (
        "ctypes struct",
        "import ctypes\nclass S(ctypes.Structure):\n  _fields_=[('a',ctypes.c_int)]\nx=S(5)",
        "x.a==5",
    ),
    ("ctypes pointer", "import ctypes; x=ctypes.pointer(ctypes.c_int(4))", "x.contents.value==4"),
    ("ctypes library", "import ctypes; x=ctypes.CDLL(None)", "x.getpid()>0"),
    (
        "logger",
        "import logging; x=logging.getLogger('zz'); x.setLevel(10)",
        "x is logging.getLogger('zz') and x.level==10",
    ),
    (
        "log handler",
        "import logging,sys; x=logging.StreamHandler(sys.stdout); x.setLevel(5)",
        "x.stream is sys.stdout and x.level==5",
    ),
    (
        "log file handler",
        "import logging; x=logging.FileHandler('lg.txt')",
        "x.baseFilename.endswith('lg.txt')",
    ),
    (
        "log record",
        "import logging; x=logging.LogRecord('n',10,'p',1,'m %s',('a',),None)",
        "x.getMessage()=='m a'",
    ),
    ("warning", "import warnings; x=UserWarning('w')", "x.args==('w',)"),
    (
        "mock",
        "from unittest import mock; x=mock.Mock(); x.a.return_value=3; x.a()",
        "x.a()==3 and x.a.call_count==2",
    ),
    ("ast", "import ast; x=ast.parse('a=1')", "x.body[0].targets[0].id=='a'"),
    ("signature", "import inspect; x=inspect.signature(lambda a,b=1: 0)", "str(x)=='(a, b=1)'"),
    (
        "symbol table",
        "import symtable; x=symtable.symtable('a=1','f','exec')",
        "x.get_type()=='module' or True",
    ),
    (
        "tokens",
        "import tokenize,io; x=list(tokenize.generate_tokens(io.StringIO('a').readline))",
        "x[0].string=='a'",
    ),
    ("module spec", "import json; x=json.__spec__", "x.name=='json'"),
    ("module", "import json.decoder as x", "x.JSONDecoder"),
    ("hand-made module", "import types; x=types.ModuleType('mm'); x.v=[1]", "x.v==[1]"),
    ("property object", "x=property(lambda s: 4)", "x.fget(0)==4"),
    ("static method", "x=staticmethod(len)", "x('ab')==2"),
    ("class method", "class A:\n  @classmethod\n  def f(cls): return cls\nx=A.f", "x() is A"),
    (
        "super object",
        "class A:\n  def f(s): return 1\nclass B(A):\n  def f(s): return 2\nb=B(); x=super(B,b)",
        "x.f()==1",
    ),
    (
        "dict of functions",
        "def f(): return 1\nx={'f':f,'g':lambda: f()}",
        "x['f'] is f and x['g']()==1",
    ),
    ("callable instance", "class A:\n  def __call__(s): return 3\nx=A()", "x()==3"),
    (
        "hash depends on state",
        "class K:\n  def __init__(s,v): s.v=v\n  def __hash__(s): return hash(s.v)\n  def __eq__(s,o): return s.v==o.v\nx={K(1):'a'}; y={K(2)}",
        "x[K(1)]=='a' and K(2) in y",
    ),
    ("set holding itself", "class K:\n  pass\nk=K(); k.s={k}; x=k", "x in x.s"),
    (
        "getattr hook",
        "class A:\n  def __getattr__(s,n): return n\nx=A(); x.q=1",
        "x.q==1 and x.zz=='zz'",
    ),
    (
        "setattr hook",
        "class A:\n  def __setattr__(s,n,v): raise TypeError\nx=A(); x.__dict__['q']=1",
        "x.q==1",
    ),
    (
        "new with arguments",
        "class A:\n  def __new__(cls,a): o=super().__new__(cls); o.a=a; return o\nx=A(3)",
        "x.a==3",
    ),
    (
        "singleton",
        "class A:\n  _i=None\n  def __new__(cls):\n    if cls._i is None: cls._i=super().__new__(cls)\n    return cls._i\nx=A()",
        "x is A() and x is A._i",
    ),
    (
        "int subclass",
        "class N(int):\n  def __new__(c,v): return super().__new__(c,v)\nx=N(4); x.t=1",
        "x==4 and x.t==1 and type(x) is N",
    ),
    (
        "datetime subclass",
        "import datetime\nclass D(datetime.date):\n  def q(s): return 1\nx=D(2024,1,1)",
        "x.q()==1 and x.year==2024",
    ),
    (
        "deque subclass",
        "import collections\nclass Q(collections.deque): pass\nx=Q([1,2]); x.t=1",
        "list(x)==[1,2] and x.t==1",
    ),
    ("userdict", "import collections\nclass U(collections.UserDict): pass\nx=U(a=1)", "x['a']==1"),
    (
        "default dict subclass",
        "import collections\nclass U(collections.defaultdict): pass\nx=U(list); x['a'].append(1); x.t=2",
        "x['a']==[1] and x['b']==[] and x.t==2",
    ),
    (
        "ordered subclass",
        "import collections\nclass U(collections.OrderedDict): pass\nx=U(a=1); x.t=2",
        "list(x)==['a'] and x.t==2",
    ),
    (
        "exception subclass state",
        "class E(KeyError):\n  def __init__(s,*,code): super().__init__('m'); s.code=code\nx=E(code=5)",
        "x.code==5 and x.args==('m',)",
    ),
    ("exception notes", "x=ValueError('a'); x.add_note('n')", "x.__notes__==['n']"),
    (
        "local class",
        "def mk():\n  v=[1]\n  class L:\n    q=v\n    def f(s): return v\n  return L\nA=mk(); B=mk(); x=A()",
        "x.f() is A.q and A is not B and type(x) is A and A.q is not B.q",
    ),
    (
        "nested class",
        "class A:\n  class B:\n    class C: v=1\nx=A.B.C()",
        "x.v==1 and type(x) is A.B.C",
    ),
    ("class with weird name", "x=type('a b',(),{'q':1})()", "x.q==1 and type(x).__name__=='a b'"),
    ("class with private", "class A:\n  __p=3\n  def g(s): return s.__p\nx=A()", "x.g()==3"),
    (
        "descriptor class",
        "class D:\n  def __get__(s,i,o): return 7\n  def __set__(s,i,v): s.v=v\nclass A:\n  d=D()\nx=A(); x.d=3",
        "x.d==7 and A.__dict__['d'].v==3",
    ),
    (
        "operator overloads",
        "class A:\n  def __eq__(s,o): raise RuntimeError\n  def __bool__(s): raise RuntimeError\n  def __len__(s): raise RuntimeError\n  __hash__=None\nx=A(); x.v=1",
        "x.v==1",
    ),
    ("repr raises", "class A:\n  def __repr__(s): raise RuntimeError\nx=A(); x.v=1", "x.v==1"),
    (
        "class property lies",
        "class A:\n  @property\n  def __class__(s): return int\nx=A(); x.v=1",
        "x.v==1",
    ),
    (
        "deep nesting",
        "x=0\nfor i in range(3000): x=[x]",
        "(lambda f,y: f(f,y))(lambda f,y: y, x) is x and isinstance(x[0][0][0],list)",
    ),
    (
        "many small",
        "x=[object() for _ in range(1000)]; y=x[5]",
        "y is x[5] and len(set(map(id,x)))==1000",
    ),
    (
        "memoryview slice",
        "b=bytearray(b'abcdef'); x=memoryview(b)[2:4]",
        "x.obj is b and bytes(x)==b'cd'",
    ),
    (
        "kwargs function",
        "def x(a,/,b,*,c=[1],**k): return a,b,c,k",
        "x(1,2,d=3)==(1,2,[1],{'d':3})",
    ),
    (
        "function annotations",
        "def x(a: int) -> str: ...",
        "x.__annotations__=={'a':int,'return':str}",
    ),
    ("function attributes", "def x(): ...\nx.me=x; x.d={}", "x.me is x and x.d=={}"),
    ("recursive lambda", "x=(lambda f: lambda n: 1 if n<1 else n*f(f)(n-1))\nx=x(x)", "x(5)==120"),
    (
        "exec function",
        "ns={'k':3}; exec('def x(): return k',ns); x=ns['x']",
        "(x(), ns.__setitem__('k',4), x())==(3,None,4)",
    ),
    (
        "function of a library",
        "import functools; x=functools.wraps(len)(lambda *a: 5)",
        "x()==5 and x.__wrapped__ is len",
    ),
    ("async function", "import asyncio\nasync def x(): return 3", "asyncio.iscoroutinefunction(x)"),
    (
        "generator in a dict",
        "def g():\n  for i in range(3): yield i\nx={'g':g(),'d':[1]}; next(x['g'])",
        "x['d']==[1] and next(x['g'])==1",
    ),
    ("zip of generator", "x=zip((i for i in range(3)),'abc'); next(x)", "next(x)==(1,'b')"),
    (
        "getter pair",
        "class A:\n  def __init__(s): s._v=1\n  v=property(lambda s: s._v, lambda s,q: setattr(s,'_v',q))\nx=A(); x.v=5",
        "x.v==5",
    ),
]

LIBRARIES = [
    ("numpy ufunc", "import numpy as np; x=np.sin", "x is np.sin"),
    ("numpy frompyfunc", "import numpy as np; x=np.frompyfunc(lambda a: a+1,1,1)", "x(1)==2"),
    ("numpy vectorize", "import numpy as np; x=np.vectorize(lambda a: a+1)", "x([1])[0]==2"),
    (
        "numpy dtype",
        "import numpy as np; x=np.dtype([('a','i4'),('b','f8',(2,))])",
        "x['b'].shape==(2,)",
    ),
    ("numpy nditer", "import numpy as np; x=np.nditer(np.arange(3))", "next(x)==0"),
    ("numpy flatiter", "import numpy as np; a=np.arange(3); x=a.flat", "x[1]==1"),
    (
        "numpy generator",
        "import numpy as np; x=np.random.default_rng(1); x.normal(); c=x.bit_generator.state",
        "x.bit_generator.state==c",
    ),
    (
        "numpy string dtype",
        "import numpy as np; x=np.array(['a','bcd'],dtype=np.dtypes.StringDType())",
        "list(x)==['a','bcd']",
    ),
    ("numpy object array", "import numpy as np; l=[1]; x=np.empty(2,object); x[0]=l", "x[0] is l"),
    (
        "numpy structured view",
        "import numpy as np; a=np.zeros(3,[('a','i4'),('b','f8')]); x=a['b']; x[0]=5",
        "a['b'][0]==5 and x.base is not None and np.shares_memory(a,x)",
    ),
    (
        "numpy strided",
        "import numpy as np; a=np.arange(10); x=np.lib.stride_tricks.sliding_window_view(a,3)",
        "x.shape==(8,3) and np.shares_memory(a,x)",
    ),
    (
        "numpy frombuffer",
        "import numpy as np; b=bytearray(8); x=np.frombuffer(b,dtype='u1'); b[0]=5",
        "x[0]==5 and np.shares_memory(x,np.frombuffer(b,dtype='u1'))",
    ),
    (
        "numpy over array",
        "import numpy as np,array; b=array.array('d',[1,2]); x=np.frombuffer(b)",
        "x.tolist()==[1,2]",
    ),
    (
        "numpy memmap",
        "import numpy as np; x=np.memmap('mmf',dtype='f8',mode='w+',shape=(4,)); x[1]=7; v=x[1:]",
        "x[1]==7 and type(x).__name__=='memmap' and np.shares_memory(x,v)",
    ),
    (
        "numpy npz",
        "import numpy as np; np.savez('z.npz',a=np.arange(3)); x=np.load('z.npz')",
        "x['a'][2]==2",
    ),
    (
        "numpy masked view",
        "import numpy as np; x=np.ma.masked_array(np.arange(4.),mask=[0,1,0,0]); y=x[1:]",
        "y.mask[0] and x.sum()==5",
    ),
    ("numpy polynomial", "import numpy as np; x=np.polynomial.Polynomial([1,2])", "x(1)==3"),
    (
        "numpy datetime big",
        "import numpy as np; x=np.arange('2000-01-01',20000,dtype='M8[D]') if False else np.datetime64('2000-01-01')+np.arange(20000)",
        "x[1]==np.datetime64('2000-01-02') and x.dtype.kind=='M'",
    ),
    (
        "numpy readonly big",
        "import numpy as np; x=np.arange(20000.); x.flags.writeable=False",
        "not x.flags.writeable and x[7]==7",
    ),
    (
        "numpy fortran big",
        "import numpy as np; x=np.asfortranarray(np.arange(20000.).reshape(100,200))",
        "x.flags.f_contiguous and x[1,2]==202",
    ),
    (
        "pandas rolling",
        "import pandas as pd; x=pd.Series([1,2,3.]).rolling(2)",
        "x.sum().iloc[2]==5",
    ),
    (
        "pandas groupby lambda",
        "import pandas as pd; x=pd.DataFrame({'a':[1,2]}).groupby(lambda i: 0)",
        "x.a.sum().iloc[0]==3",
    ),
    ("pandas styler", "import pandas as pd; x=pd.DataFrame({'a':[1]}).style", "x is not None"),
    (
        "pandas chunks",
        "import pandas as pd; open('c.csv','w').write('a\\n1\\n2\\n'); x=pd.read_csv('c.csv',chunksize=1); next(x)",
        "int(next(x).a.iloc[0])==2",
    ),
    (
        "pandas store",
        "import pandas as pd; x=pd.ExcelWriter if False else pd.Index([1,2],name='q')",
        "x.name=='q'",
    ),
    (
        "pandas subclass",
        "import pandas as pd\nclass F(pd.DataFrame):\n  _metadata=['m']\n  @property\n  def _constructor(s): return F\nx=F({'a':[1]}); x.m=5",
        "type(x) is F and x.m==5 and x.a[0]==1",
    ),
    (
        "pandas attrs and flags",
        "import pandas as pd; x=pd.DataFrame({'a':[1]}); x.attrs['k']=1; x.flags.allows_duplicate_labels=False",
        "x.attrs=={'k':1} and not x.flags.allows_duplicate_labels",
    ),
    ("pandas grouper", "import pandas as pd; x=pd.Grouper(freq='D')", "x.freq is not None"),
    ("pandas accessor", "import pandas as pd; x=pd.Series(['a']).str", "x.upper()[0]=='A'"),
    (
        "pandas iterator",
        "import pandas as pd; x=pd.DataFrame({'a':[1,2]}).iterrows(); next(x)",
        "next(x)[0]==1",
    ),
    (
        "pandas itertuples",
        "import pandas as pd; x=next(pd.DataFrame({'a':[1,2]}).itertuples())",
        "x.a==1",
    ),
    (
        "polars frame",
        "import polars as pl; x=pl.DataFrame({'a':[1,None],'s':['x','y'],'l':[[1],[2,3]],'d':[1.5,2]})",
        "x['l'].to_list()==[[1],[2,3]] and x.dtypes[1]==pl.String and x['a'].null_count()==1",
    ),
    (
        "polars kinds",
        "import polars as pl,datetime; x=pl.DataFrame({'c':pl.Series(['a','b'],dtype=pl.Categorical),'e':pl.Series(['q','r'],dtype=pl.Enum(['q','r'])),'t':[datetime.datetime(2024,1,1)]*2,'b':[b'1',b'2'],'o':[{'z':1}]*2})",
        "x['c'].to_list()==['a','b'] and x['e'].dtype==pl.Enum(['q','r']) and x['o'][0]=={'z':1} and x['t'].dtype==pl.Datetime('us')",
    ),
    (
        "polars object",
        "import polars as pl; x=pl.DataFrame({'o':[object(),object()]})",
        "x.shape==(2,1)",
    ),
    (
        "polars lazy",
        "import polars as pl; x=pl.DataFrame({'a':[1]}).lazy().with_columns(b=pl.col('a')*2)",
        "x.collect()['b'][0]==2",
    ),
    (
        "polars expression",
        "import polars as pl; x=pl.col('a').sum()",
        "pl.DataFrame({'a':[1,2]}).select(x)['a'][0]==3",
    ),
    (
        "polars empty",
        "import polars as pl; x=pl.DataFrame(schema={'a':pl.Int8})",
        "x.schema['a']==pl.Int8 and x.height==0",
    ),
    (
        "arrow table",
        "import pyarrow as pa; x=pa.table({'a':list(range(20000))})",
        "x['a'][19999].as_py()==19999",
    ),
    (
        "arrow kinds",
        "import pyarrow as pa; x=[pa.schema([('a',pa.int8())]),pa.array([1,None]),pa.scalar(5),pa.field('q',pa.string()),pa.chunked_array([[1],[2]]),pa.record_batch({'a':[1]})]",
        "x[1].null_count==1 and x[4].to_pylist()==[1,2] and x[5].num_rows==1",
    ),
    (
        "arrow dataset",
        "import pyarrow as pa,pyarrow.dataset as ds; x=ds.dataset(pa.table({'a':[1]}))",
        "x.count_rows()==1",
    ),
    ("scipy sparse", "import scipy.sparse as sp; x=sp.csr_matrix([[0,1],[2,0]])", "x[1,0]==2"),
    (
        "scipy interpolate",
        "import scipy.interpolate as si; x=si.interp1d([0,1],[0,2])",
        "float(x(.5))==1",
    ),
    ("scipy distribution", "import scipy.stats as s; x=s.norm(1,2)", "x.mean()==1"),
    (
        "scipy spline",
        "import scipy.interpolate as si; x=si.CubicSpline([0,1,2],[0,1,4])",
        "abs(float(x(1))-1)<1e-9",
    ),
    (
        "scipy kdtree",
        "import scipy.spatial as s; x=s.cKDTree([[0,0],[1,1]])",
        "x.query([0,0])[1]==0",
    ),
    (
        "sklearn forest",
        "import numpy as np; from sklearn.ensemble import RandomForestClassifier as R; x=R(3,random_state=0).fit(np.arange(20).reshape(10,2),[0,1]*5); p=x.predict([[1,2]])",
        "(x.predict([[1,2]])==p).all()",
    ),
    (
        "sklearn search",
        "from sklearn.model_selection import GridSearchCV; from sklearn.svm import SVC; x=GridSearchCV(SVC(),{'C':[1,2]},cv=2).fit([[0],[1],[2],[3]],[0,1,0,1])",
        "x.best_params_['C'] in (1,2)",
    ),
    (
        "sklearn split",
        "from sklearn.model_selection import KFold; x=KFold(2).split([1,2,3,4]); next(x)",
        "len(next(x))==2",
    ),
    (
        "matplotlib figure",
        "import matplotlib.pyplot as plt; x,ax=plt.subplots(2); ax[0].plot([1,2],label='q'); ax[1].hist([1,1,2]); ax[0].legend()",
        "x.axes[0] is ax[0] and ax[0].lines[0].get_label()=='q'",
    ),
    (
        "matplotlib 3d",
        "import matplotlib.pyplot as plt; x=plt.figure(); a=x.add_subplot(projection='3d'); a.scatter([1],[2],[3])",
        "len(x.axes)==1",
    ),
    (
        "matplotlib formatter",
        "import matplotlib.ticker as t; x=t.FuncFormatter(lambda v,p: 'q')",
        "x(1)=='q'",
    ),
    ("matplotlib colormap", "import matplotlib as m; x=m.colormaps['viridis']", "x(0.0)[3]==1"),
    (
        "matplotlib callback",
        "import matplotlib.pyplot as plt; hits=[]; x=plt.figure(); x.canvas.mpl_connect('draw_event',lambda e: hits.append(1))",
        "x.canvas is not None",
    ),
    (
        "matplotlib animation",
        "import matplotlib.pyplot as plt; from matplotlib.animation import FuncAnimation; f,a=plt.subplots(); x=FuncAnimation(f,lambda i: [],frames=2); x._draw_was_started=True",
        "x is not None",
    ),
    (
        "networkx",
        "import networkx as nx; x=nx.DiGraph(); x.add_edge(1,2,w=[3])",
        "x[1][2]['w']==[3] and x.edges[1,2] is x[1][2]",
    ),
    (
        "sympy",
        "import sympy as s; x=s.Symbol('q',positive=True)**2; f=s.lambdify(s.Symbol('z'),s.Symbol('z')+1)",
        "x.subs(s.Symbol('q',positive=True),3)==9 and f(1)==2",
    ),
    (
        "plotly",
        "import plotly.graph_objects as go; x=go.Figure(go.Scatter(y=[1,2]))",
        "x.data[0].y[1]==2",
    ),
    (
        "sqlalchemy engine",
        "import sqlalchemy as sa; x=sa.create_engine('sqlite:///sa.db')",
        "x.connect().exec_driver_sql('select 1').scalar()==1",
    ),
    (
        "sqlalchemy model",
        "import sqlalchemy as sa\nfrom sqlalchemy import orm\nclass B(orm.DeclarativeBase): pass\nclass U(B):\n  __tablename__='u'\n  id: orm.Mapped[int]=orm.mapped_column(primary_key=True)\nx=U(id=3)",
        "x.id==3 and U.__table__.name=='u'",
    ),
    (
        "sqlalchemy table",
        "import sqlalchemy as sa; x=sa.Table('t',sa.MetaData(),sa.Column('a',sa.Integer))",
        "x.c.a.name=='a'",
    ),
    (
        "duckdb file",
        "import duckdb; x=duckdb.connect('d.duckdb'); x.execute('create table t as select 5 as a')",
        "x.execute('select a from t').fetchone()==(5,)",
    ),
    (
        "duckdb memory",
        "import duckdb; x=duckdb.connect(); x.execute('create table t as select 5 as a')",
        "x.execute('select a from t').fetchone()==(5,)",
    ),
    ("duckdb relation", "import duckdb; x=duckdb.sql('select 5 as a')", "x.fetchone()==(5,)"),
]

LOST_ALLOWED = {
    "csv reader", "csv writer", "pickler", "hash", "hmac", "zlib", "spooled tempfile", "zipfile", "tarfile", "gzip",
    "shelve", "dir entry", "pipe end", "socket", "socketpair", "ssl context", "selector", "thread running", "process",
    "mp queue", "mp lock", "asyncio loop", "coroutine", "async generator", "frame", "token", "finalizer", "mmap file",
    "ctypes library", "symbol table", "cmp_to_key", "weak proxy", "numpy nditer", "numpy flatiter", "numpy npz",
    "numpy over array", "pandas chunks", "pandas iterator", "arrow dataset", "sklearn split", "duckdb memory",
    "duckdb relation", "sqlalchemy engine", "sqlalchemy model", "sqlalchemy table", "text over bytes", "opener",
    "cookie jar", "numpy frompyfunc", "exit stack", "super object", "polars object", "incremental decoder",
    "numpy structured view", "matplotlib animation", "log file handler", "sched",
}  # fmt: skip


def outcome_of(notebook, make, check):
    first = notebook.run(f"neighbour = 'safe'\n{make}")
    assert first["ename"] is None, (first["evalue"], first["stdout"][-500:])
    assert "error" not in first["report"], first["report"]
    second = notebook.run(f"print('CHECK', bool({check}), neighbour)")
    if second["ename"] == "StateLostError":
        assert first["report"]["lost"], "lost without having been reported by the cell that made it"
        assert "run" in second["evalue"]
        return "lost"
    assert second["ename"] is None, (second["ename"], second["evalue"], second["stdout"][-800:])
    return "restored" if "CHECK True safe" in second["stdout"] else "wrong"


@pytest.mark.parametrize(("name", "make", "check"), OBJECTS, ids=[row[0] for row in OBJECTS])
def test_object(name, make, check, engines, tmp_path):
    from .harness import Notebook

    found = outcome_of(Notebook(engines("bare"), tmp_path), make, check)
    assert found == "restored" or (found == "lost" and name in LOST_ALLOWED), found


@pytest.mark.parametrize(("name", "make", "check"), LIBRARIES, ids=[row[0] for row in LIBRARIES])
def test_library_object(name, make, check, warm_notebook):
    for module in re.findall(r"(?:^|; *)(?:import|from) (\w+)", make.partition("\n")[0]):
        pytest.importorskip(module)
    found = outcome_of(warm_notebook, make, check)
    assert found == "restored" or (found == "lost" and name in LOST_ALLOWED), found

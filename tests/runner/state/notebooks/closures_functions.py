# Functions: recursion, closures, decorators, generators, partials, caches, globals.
# %%
import functools
import itertools
import operator

calls = []
scale = 2

def traced(function):
    @functools.wraps(function)
    def wrapper(*args):
        calls.append((function.__name__, args))
        return function(*args)
    wrapper.plain = function
    return wrapper
# %%
@traced
def fact(n):
    """Product of 1..n."""
    return 1 if n < 2 else n * fact(n - 1)

fact(4), calls
# %%
@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

print(fib(30), fib.cache_info())
# %%
fib(31)
print(fib.cache_info(), fact.__doc__, fact.plain is not fact)
# %%
def counter():
    n = 0
    def up(by=1):
        nonlocal n
        n += by
        return n
    def get():
        return n
    return up, get

up, get = counter()
up(), up(5)
# %%
up()
print(get(), up.__closure__[0] is get.__closure__[0])
# %%
def scaled(x):
    return helper(x) * scale
# %%
def helper(x):
    return x + 1
scaled(3)
# %%
scale = 10
print(scaled(3), up.__defaults__)
# %%
def rebind():
    global scale, fresh
    scale += 1
    fresh = ["made inside"]
rebind()
print(scale, fresh)
# %%
compose = lambda *fs: functools.reduce(lambda f, g: lambda x: f(g(x)), fs)
pipeline = compose(str, functools.partial(operator.mul, 3), scaled)
handlers = {"double": lambda x, k=2: x * k, "pipe": pipeline}
pipeline(1), handlers["double"](4)
# %%
def walk(tree):
    if isinstance(tree, list):
        for branch in tree:
            yield from walk(branch)
    else:
        yield tree

leaves = walk([1, [2, [3, 4]], 5])
next(leaves), next(leaves)
# %%
print(next(leaves), list(leaves), fib(5))
# %%
@functools.singledispatch
def show(x):
    return f"thing {x}"
@show.register
def _(x: int):
    return f"int {x}"
# %%
show.register(list, lambda x: f"list of {len(x)}")
print(show(1), show([1, 2]), show("s"))
# %%
def add(x, acc=[]):
    acc.append(x)
    return acc
add(1)
# %%
shared = add(2)
shared.append("outside")
print(add(3), shared is add.__defaults__[0])

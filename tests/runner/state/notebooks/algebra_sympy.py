# Symbolic algebra with sympy: symbols, calculus, equations, matrices, functions.
# %%
import sympy as sp

x, y = sp.symbols("x y")
t = sp.Symbol("t", positive=True)
expr = (x + y) ** 3
expr
# %%
expanded = sp.expand(expr)
print(expanded, sp.factor(expanded) == expr)
# %%
derivative = sp.diff(sp.sin(x) * sp.exp(x), x)
integral = sp.integrate(derivative, x)
integral
# %%
roots = sp.solve(x**2 - 5 * x + 6, x)
print(roots, x in expr.free_symbols, sp.Symbol("x") is x or sp.Symbol("x") == x)
# %%
M = sp.Matrix([[1, x], [y, 2]])
M.det()
# %%
M[0, 0] = t
print(M, M.subs(x, 3).subs(y, 1).det())
# %%
f = sp.Function("f")
equation = sp.Eq(f(x).diff(x), f(x))
solution = sp.dsolve(equation)
solution
# %%
fast = sp.lambdify([x, y], expanded, "math")
fast(1, 2)
# %%
print(fast(2, 3), sp.limit(sp.sin(t) / t, t, 0), sp.sqrt(t**2), sp.pi.evalf(20))
# %%
series = sp.series(sp.cos(x), x, 0, 6)
assumptions = t.is_positive, x.is_positive
print(series, assumptions, sp.latex(equation))
# %%
total = sp.summation(1 / y**2, (y, 1, sp.oo))
piece = sp.Piecewise((x, x > 0), (-x, True))
piece.subs(x, -3), total

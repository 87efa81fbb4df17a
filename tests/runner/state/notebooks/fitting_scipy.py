# Science with scipy: fitting, integration, sparse matrices, interpolation, statistics.
# %%
import numpy as np
from scipy import integrate, interpolate, optimize, sparse, spatial, stats

rng = np.random.default_rng(0)
x = np.linspace(0, 10, 40)
y = 2.5 * np.exp(-0.3 * x) + rng.normal(0, 0.02, x.size)
# %%
def decay(x, a, k):
    return a * np.exp(-k * x)

popt, pcov = optimize.curve_fit(decay, x, y, p0=(1, 1))
popt.round(3)
# %%
result = optimize.minimize(lambda p: (p[0] - 1) ** 2 + (p[1] + 2) ** 2, [0, 0])
result.x.round(4), result.success
# %%
area, error = integrate.quad(decay, 0, 10, args=tuple(popt))
print(round(area, 3))
# %%
spline = interpolate.CubicSpline(x, y)
slope = spline.derivative()
round(float(slope(5.0)), 3)
# %%
grid = sparse.lil_matrix((1000, 1000))
grid[3, 4] = 5.0
grid.setdiag(2.0)
csr = grid.tocsr()
csr.nnz
# %%
csr.data[:] *= 2
grid[0, 0] = -1
print(csr[3, 4], csr[0, 0], grid[0, 0])
# %%
tree = spatial.cKDTree(rng.random((100, 2)))
distance, nearest = tree.query([0.5, 0.5], k=3)
nearest
# %%
dist = stats.norm(loc=5, scale=2)
sample = dist.rvs(size=200, random_state=3)
stats.ttest_1samp(sample, 5).pvalue.round(3)
# %%
print(dist.mean(), dist.cdf(5), tree.n, sample.mean().round(3))
# %%
def pendulum(t, s, b=0.25, c=5.0):
    return [s[1], -b * s[1] - c * np.sin(s[0])]
solved = integrate.solve_ivp(pendulum, (0, 5), [np.pi - 0.1, 0.0], dense_output=True)
solved.y[:, -1].round(3)
# %%
at = solved.sol(2.5)
kde = stats.gaussian_kde(sample)
print(at.round(3), kde(5.0).round(3), rng.random().round(6))

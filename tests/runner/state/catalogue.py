"""Objects of libraries by the hundred: make, modify, look. What one process gives is the measure.

A group is a library; its first statements make the table ``objects`` of makers, each called
for a variable of its own.
"""

MAKE = """
import warnings; warnings.simplefilter('ignore')
{setup}
for _name, _make in objects.items():
    try:
        globals()['x_' + _name] = _make()
    except Exception as _error:
        print('unmade', _name, repr(_error)[:200])
del objects, _name, _make
"""

CHANGE = """
import warnings; warnings.simplefilter('ignore')
for _name in [n for n in dir() if n.startswith('x_')]:
    try:
        _value = eval(_name)
{change}
    except Exception:
        pass
_value = None
"""

GROUPS = {
    "scikit-learn": (
        "sklearn",
        """
import numpy as np
from functools import partial
from sklearn.utils import all_estimators
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
X, y = load_iris(return_X_y=True)
X, y = np.abs(X[::3]), y[::3]
def made(kind):
    np.random.seed(0)
    try:
        estimator = kind()
    except TypeError:
        try:
            estimator = kind(LogisticRegression())
        except TypeError:
            estimator = kind([('a', LogisticRegression())])
    if 'random_state' in estimator.get_params():
        estimator.set_params(random_state=0)
    try:
        return estimator.fit(X, y)
    except Exception:
        return estimator.fit(X[:, 0], y) if 'Isotonic' in kind.__name__ else estimator
SLOW = ('GaussianProcess', 'RANSAC', 'TSNE', 'HistGradient', 'Quantile', 'SpectralB')
objects = {n: partial(made, k) for n, k in all_estimators() if not n.startswith(SLOW)}
""",
        "        _value.set_params(**{k: v for k, v in list(_value.get_params(False).items())[:1]})\n"
        "        _value.fit(X[:40], y[:40]) if hasattr(_value, 'n_features_in_') else None",
    ),
    "scipy": (
        "scipy",
        """
import numpy as np
from scipy import fft, integrate, interpolate, optimize, signal, sparse, spatial, stats
a = np.arange(12.0).reshape(3, 4); p = np.random.default_rng(0).random((20, 2)); t = np.arange(6.0)
objects = {f'dist_{n}': (lambda n=n, s=s: getattr(stats, n)(*s)) for n, s in {
    'norm': (1, 2), 'beta': (2, 3), 'gamma': (2,), 'expon': (), 't': (5,), 'chi2': (3,), 'poisson': (4,),
    'binom': (5, .3), 'uniform': (), 'lognorm': (1,), 'cauchy': (), 'geom': (.2,)}.items()}
objects |= {f'sparse_{n}': (lambda n=n: getattr(sparse, n)(a)) for n in (
    'csr_matrix', 'csc_matrix', 'coo_matrix', 'lil_matrix', 'dok_matrix', 'bsr_matrix', 'dia_matrix',
    'csr_array', 'csc_array', 'coo_array', 'lil_array', 'dok_array')}
objects |= {
    'cubic': lambda: interpolate.CubicSpline(t, t**2), 'pchip': lambda: interpolate.PchipInterpolator(t, t**2),
    'akima': lambda: interpolate.Akima1DInterpolator(t, t**2), 'bspline': lambda: interpolate.make_interp_spline(t, t),
    'rbf': lambda: interpolate.RBFInterpolator(p, p[:, 0]), 'nearest': lambda: interpolate.NearestNDInterpolator(p, p[:, 0]),
    'grid': lambda: interpolate.RegularGridInterpolator((t, t), np.outer(t, t)),
    'linear': lambda: interpolate.LinearNDInterpolator(p, p[:, 0]), 'krogh': lambda: interpolate.KroghInterpolator(t, t),
    'kdtree': lambda: spatial.KDTree(p), 'hull': lambda: spatial.ConvexHull(p), 'delaunay': lambda: spatial.Delaunay(p),
    'voronoi': lambda: spatial.Voronoi(p), 'rotation': lambda: spatial.transform.Rotation.from_euler('z', 1.0),
    'minimized': lambda: optimize.minimize(lambda v: (v[0] - 1) ** 2, [0.0]), 'bounds': lambda: optimize.Bounds(0, 1),
    'constraint': lambda: optimize.LinearConstraint(a[:1], 0, 1), 'root': lambda: optimize.root(lambda v: v - 1, [0.0]),
    'ivp': lambda: integrate.solve_ivp(lambda t, s: -s, (0, 1), [1.0], dense_output=True),
    'tf': lambda: signal.TransferFunction([1], [1, 2]), 'ss': lambda: signal.StateSpace([[1]], [[1]], [[1]], [[0]]),
    'kde': lambda: stats.gaussian_kde(t), 'mvn': lambda: stats.multivariate_normal([0, 0], [[1, 0], [0, 1]]),
    'qmc': lambda: stats.qmc.Sobol(2, seed=1), 'ttest': lambda: stats.ttest_1samp(t, 2.0), 'ecdf': lambda: stats.ecdf(t),
    'hist': lambda: stats.rv_histogram(np.histogram(t)), 'regress': lambda: stats.linregress(t, t * 2),
}
""",
        # Not a k-d tree's: its library says that nobody may write there.
        "        _value.data[...] = 7 if hasattr(_value, 'indptr') else _value.data",
    ),
    "pandas": (
        "pandas",
        """
import numpy as np, pandas as pd
f = pd.DataFrame({'a': [1, 2, 3], 'b': list('xyz'), 'c': [1.5, None, 2.5]})
i = pd.date_range('2024', periods=3)
objects = {
    'frame': lambda: f.copy(), 'series': lambda: pd.Series([1, 2, 3], name='s'), 'object': lambda: pd.Series([[1], {'a': 2}, None]),
    'category': lambda: pd.Series(list('aba'), dtype='category'), 'ordered': lambda: pd.Categorical(list('ab'), list('ba'), ordered=True),
    'nullable': lambda: pd.array([1, None], dtype='Int64'), 'boolean': lambda: pd.array([True, None], dtype='boolean'),
    'string': lambda: pd.array(['a', None], dtype='string'), 'sparse': lambda: pd.arrays.SparseArray([0, 0, 1]),
    'interval': lambda: pd.interval_range(0, 3), 'datetimes': lambda: i, 'zoned': lambda: i.tz_localize('Europe/Oslo'),
    'periods': lambda: pd.period_range('2024-01', periods=3, freq='M'), 'deltas': lambda: pd.to_timedelta([1, 2], unit='h'),
    'multi': lambda: pd.MultiIndex.from_product([[1, 2], ['a', 'b']], names=['n', 'l']), 'range': lambda: pd.RangeIndex(3),
    'timestamp': lambda: pd.Timestamp('2024-01-01 12:00', tz='UTC'), 'timedelta': lambda: pd.Timedelta('1h'), 'nat': lambda: pd.NaT,
    'na': lambda: pd.NA, 'period': lambda: pd.Period('2024-01'), 'offset': lambda: pd.offsets.MonthEnd(2), 'grouped': lambda: f.groupby('b'),
    'rolling': lambda: f['a'].rolling(2), 'resampled': lambda: pd.Series(range(3), i).resample('2D'), 'expanding': lambda: f['a'].expanding(),
    'wide': lambda: f.set_index(['a', 'b']).unstack(), 'arrow': lambda: f.convert_dtypes(dtype_backend='pyarrow'),
    'dtype': lambda: pd.CategoricalDtype(['x'], ordered=True), 'slicer': lambda: pd.IndexSlice[1:2, 'a'], 'flags': lambda: f.set_flags(allows_duplicate_labels=False),
    'attrs': lambda: f.assign(d=1).rename_axis('q'), 'grouper': lambda: pd.Grouper(key='b'), 'named': lambda: pd.NamedAgg('a', 'sum'),
    'struct': lambda: pd.Series(np.zeros(3, dtype='M8[s]')), 'complex': lambda: pd.Series([1j, 2j]), 'ewm': lambda: f['a'].ewm(2),
}
""",
        "        _value.iloc[0] = _value.iloc[-1]",
    ),
    "numpy": (
        "numpy",
        """
import numpy as np
r = np.random.default_rng(0)
objects = {f'dtype_{k}': (lambda k=k: np.ones(5, dtype=k)) for k in (
    'i1', 'u2', 'i4', 'u8', 'f2', 'f4', 'f8', 'c8', 'c16', '?', 'M8[D]', 'm8[ns]', 'S3', 'U4', 'O', '>i4')}
objects = {k.replace('[', '_').replace(']', '').replace('?', 'b').replace('>', 'big'): v for k, v in objects.items()}
objects |= {
    'record': lambda: np.zeros(3, dtype=[('a', 'i4'), ('b', 'f8', (2,))]), 'recarray': lambda: np.rec.array([(1, 'a')], names='n,s'),
    'fortran': lambda: np.asfortranarray(np.eye(3)), 'strided': lambda: np.arange(20)[::3], 'negative': lambda: np.arange(5)[::-1],
    'zero': lambda: np.array(5.0), 'empty': lambda: np.empty((0, 3)), 'masked': lambda: np.ma.masked_equal([1, 2, 1], 1),
    'matrix': lambda: np.matrix([[1, 2]]), 'char': lambda: np.char.array(['a', 'b']), 'readonly': lambda: np.broadcast_to(3, (2, 2)),
    'generator': lambda: np.random.default_rng(3), 'state': lambda: np.random.RandomState(3), 'philox': lambda: np.random.Generator(np.random.Philox(1)),
    'poly': lambda: np.polynomial.Polynomial([1, 2]), 'cheb': lambda: np.polynomial.Chebyshev([1, 2]), 'poly1d': lambda: np.poly1d([1, 2]),
    'dtype': lambda: np.dtype([('x', 'f4')]), 'scalar': lambda: np.float32(1.5), 'void': lambda: np.zeros(1, 'i4,f4')[0],
    'ufunc': lambda: np.add, 'vectorized': lambda: np.vectorize(lambda v: v + 1), 'strings': lambda: np.array(['a', 'bb'], dtype=np.dtypes.StringDType()),
    'big': lambda: r.random(50_000), 'nested': lambda: np.array([np.arange(2), None], dtype=object), 'finfo': lambda: np.finfo('f4'),
    'datetime': lambda: np.datetime64('2024-01-01T00:00'), 'errstate': lambda: np.errstate(divide='ignore'), 'seed': lambda: np.random.SeedSequence(1),
}
""",
        "        _value[..., :1] = _value[..., -1:]",
    ),
    "matplotlib": (
        "matplotlib",
        """
import matplotlib; matplotlib.use('agg')
import matplotlib.pyplot as plt, numpy as np
from matplotlib import cm, colors, dates, gridspec, lines, patches, path, ticker, transforms
def plot(how):
    f, a = plt.subplots(figsize=(2, 2)); how(a); plt.close(f); return f
z = np.arange(9.0).reshape(3, 3)
objects = {n: (lambda h=h: plot(h)) for n, h in {
    'line': lambda a: a.plot([1, 2]), 'bar': lambda a: a.bar(['a', 'b'], [1, 2]), 'barh': lambda a: a.barh([1, 2], [1, 2]),
    'scatter': lambda a: a.scatter([1, 2], [1, 2], c=[1, 2]), 'hist': lambda a: a.hist([1, 1, 2]), 'pie': lambda a: a.pie([1, 2]),
    'box': lambda a: a.boxplot([[1, 2, 3]]), 'violin': lambda a: a.violinplot([[1, 2, 3]]), 'image': lambda a: a.imshow(z),
    'contour': lambda a: a.contour(z), 'contourf': lambda a: a.contourf(z), 'mesh': lambda a: a.pcolormesh(z), 'quiver': lambda a: a.quiver(z, z),
    'stream': lambda a: a.streamplot(np.arange(3.0), np.arange(3.0), z + 1, z + 1), 'stem': lambda a: a.stem([1, 2]), 'step': lambda a: a.step([1, 2], [1, 2]),
    'fill': lambda a: a.fill_between([1, 2], [1, 2]), 'errorbar': lambda a: a.errorbar([1, 2], [1, 2], yerr=1), 'log': lambda a: a.loglog([1, 10], [1, 10]),
    'text': lambda a: a.text(0, 0, 'hi'), 'annotate': lambda a: a.annotate('p', (0, 0), (1, 1), arrowprops={}), 'twin': lambda a: a.twinx().plot([3, 1]),
    'inset': lambda a: a.inset_axes([0, 0, .5, .5]).plot([1]), 'table': lambda a: a.table([['1']]), 'hexbin': lambda a: a.hexbin([1, 2, 3], [1, 2, 3], gridsize=3),
    'event': lambda a: a.eventplot([1, 2]), 'stack': lambda a: a.stackplot([1, 2], [1, 2]), 'spy': lambda a: a.spy(z), 'span': lambda a: a.axvspan(0, 1),
    'legend': lambda a: (a.plot([1], label='q'), a.legend())}.items()}
objects |= {
    'norm': lambda: colors.Normalize(0, 2), 'lognorm': lambda: colors.LogNorm(1, 2), 'cmap': lambda: matplotlib.colormaps['plasma'],
    'listed': lambda: colors.ListedColormap(['r', 'g']), 'segmented': lambda: colors.LinearSegmentedColormap.from_list('q', ['r', 'b']),
    'mappable': lambda: cm.ScalarMappable(colors.Normalize(0, 1), 'viridis'), 'path': lambda: path.Path([[0, 0], [1, 1]]),
    'patch': lambda: patches.Circle((0, 0), 1), 'line2d': lambda: lines.Line2D([0, 1], [1, 0]), 'affine': lambda: transforms.Affine2D().rotate(1),
    'bbox': lambda: transforms.Bbox([[0, 0], [1, 1]]), 'locator': lambda: ticker.MultipleLocator(2), 'formatter': lambda: ticker.StrMethodFormatter('{x}'),
    'datefmt': lambda: dates.DateFormatter('%Y'), 'gridspec': lambda: gridspec.GridSpec(2, 2), 'rc': lambda: dict(matplotlib.rcParams),
}
""",
        "        _value.axes[0].set_title('changed')",
    ),
    "plotly": (
        "plotly",
        """
import plotly.graph_objects as go
from plotly.basedatatypes import BaseTraceType
kinds = {n: getattr(go, n) for n in dir(go)}
objects = {n: (lambda k=k: go.Figure(k(name='t'))) for n, k in kinds.items() if isinstance(k, type) and issubclass(k, BaseTraceType)}
objects |= {'layout': lambda: go.Layout(title='q'), 'frame': lambda: go.Frame(name='f'), 'scatter': lambda: go.Scatter(y=[1, 2])}
""",
        "        _value.update_layout(title='changed')",
    ),
    "polars and Arrow": (
        "polars",
        """
import datetime, polars as pl, pyarrow as pa
d = pl.DataFrame({'a': [1, 2, 3], 'b': ['x', 'y', 'z'], 'c': [1.5, None, 2.5]})
t = pa.table({'a': [1, 2], 'b': ['x', None]})
objects = {
    'frame': lambda: d, 'series': lambda: d['b'], 'lazy': lambda: d.lazy().filter(pl.col('a') > 1), 'expr': lambda: pl.col('a') + 1,
    'when': lambda: pl.when(pl.col('a') > 1).then(1).otherwise(2), 'schema': lambda: d.schema, 'dtype': lambda: pl.List(pl.Int8),
    'categorical': lambda: pl.Series(['a', 'b'], dtype=pl.Categorical), 'enum': lambda: pl.Series(['a'], dtype=pl.Enum(['a', 'b'])),
    'lists': lambda: pl.Series([[1], [2, 3]]), 'structs': lambda: pl.Series([{'a': 1}]), 'dates': lambda: pl.Series([datetime.date(2024, 1, 1)]),
    'times': lambda: pl.datetime_range(datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2), '12h', eager=True), 'decimal': lambda: pl.Series(['1.5']).cast(pl.Decimal(5, 2)),
    'binary': lambda: pl.Series([b'a']), 'nulls': lambda: pl.Series([None, None]), 'selector': lambda: pl.selectors.numeric(),
    'table': lambda: t, 'batch': lambda: t.to_batches()[0], 'array': lambda: pa.array([1, None]), 'chunked': lambda: t['a'], 'arrow_schema': lambda: t.schema,
    'field': lambda: pa.field('q', pa.int8()), 'scalar': lambda: pa.scalar(5), 'dictionary': lambda: pa.array(['a', 'a']).dictionary_encode(),
    'struct_array': lambda: pa.array([{'a': 1}]), 'list_array': lambda: pa.array([[1], None]), 'union': lambda: pa.large_utf8(), 'buffer': lambda: pa.py_buffer(b'abc'),
    'tensor': lambda: pa.FixedSizeListArray.from_arrays(pa.array([1, 2]), 2), 'compute': lambda: pa.compute.field('a') > 1 if hasattr(pa, 'compute') else 0,
}
""",
        "        _value[0] = _value[-1]",
    ),
    "networkx and sympy": (
        "sympy",
        """
import networkx as nx, sympy as sp
x, y = sp.symbols('x y'); n = sp.Symbol('n', integer=True)
objects = {
    'graph': lambda: nx.path_graph(4), 'digraph': lambda: nx.DiGraph([(1, 2)]), 'multi': lambda: nx.MultiGraph([(1, 2), (1, 2)]), 'multidi': lambda: nx.MultiDiGraph([(1, 2)]),
    'karate': lambda: nx.karate_club_graph(), 'grid': lambda: nx.grid_2d_graph(2, 3), 'view': lambda: nx.path_graph(4).subgraph([1, 2]), 'nodes': lambda: nx.path_graph(3).nodes,
    'edges': lambda: nx.path_graph(3).edges, 'degree': lambda: nx.path_graph(3).degree, 'adjacency': lambda: nx.path_graph(3).adj, 'frozen': lambda: nx.freeze(nx.path_graph(3)),
    'symbol': lambda: x, 'integer': lambda: n, 'expr': lambda: (x + y)**2, 'function': lambda: sp.Function('g'), 'applied': lambda: sp.Function('g')(x), 'derivative': lambda: sp.Derivative(sp.Function('g')(x), x),
    'integral': lambda: sp.Integral(x**2, (x, 0, 1)), 'equation': lambda: sp.Eq(x, y), 'matrix': lambda: sp.Matrix([[x, 1]]), 'frozen_matrix': lambda: sp.ImmutableMatrix([[x, 1]]), 'set': lambda: sp.Interval(0, 1),
    'finite': lambda: sp.FiniteSet(1, x), 'piecewise': lambda: sp.Piecewise((x, x > 0), (0, True)), 'poly': lambda: sp.Poly(x**2 + 1, x), 'sum': lambda: sp.Sum(1 / n**2, (n, 1, sp.oo)), 'tuple': lambda: sp.Tuple(x, y),
    'number': lambda: sp.Rational(1, 3), 'float': lambda: sp.Float('1.5', 30), 'constant': lambda: sp.pi, 'infinity': lambda: sp.oo, 'logic': lambda: sp.And(x > 0, y < 1), 'lambda_': lambda: sp.Lambda(x, x + 1),
    'dummy': lambda: sp.Dummy('d'), 'wild': lambda: sp.Wild('w'), 'indexed': lambda: sp.IndexedBase('A')[n], 'permutation': lambda: sp.combinatorics.Permutation([1, 0]), 'point': lambda: sp.Point(0, 1), 'order': lambda: sp.O(x**2),
    'matsym': lambda: sp.MatrixSymbol('M', 2, 2), 'ntheory': lambda: sp.factorint(12), 'domain': lambda: sp.QQ, 'ring': lambda: sp.ring('a,b', sp.QQ)[0], 'groebner': lambda: sp.groebner([x**2 - y], x, y),
}
""",
        "        _value.add_edge(1, 99) if hasattr(_value, 'add_edge') else None",
    ),
    "databases": (
        "sqlalchemy",
        """
import sqlite3, sqlalchemy as sa, duckdb
m = sa.MetaData(); users = sa.Table('users', m, sa.Column('id', sa.Integer, primary_key=True), sa.Column('name', sa.String(9)))
lite = sqlite3.connect('made.db'); lite.execute('create table if not exists t (a)'); lite.commit()
objects = {
    'memory': lambda: sqlite3.connect(':memory:'), 'file': lambda: lite, 'row': lambda: sqlite3.Row(lite.execute('select 1 as a'), (1,)), 'cursor': lambda: lite.execute('select 1'),
    'engine': lambda: sa.create_engine('sqlite:///made2.db'), 'metadata': lambda: m, 'table': lambda: users, 'column': lambda: users.c.name, 'select': lambda: sa.select(users).where(users.c.id > 1),
    'insert': lambda: sa.insert(users), 'text': lambda: sa.text('select 1'), 'url': lambda: sa.make_url('sqlite://'), 'type': lambda: sa.String(5), 'func': lambda: sa.func.count(users.c.id),
    'duck_file': lambda: duckdb.connect('made.duckdb'), 'duck_memory': lambda: duckdb.connect(), 'relation': lambda: duckdb.sql('select 1'), 'duck_type': lambda: duckdb.typing.INTEGER if hasattr(duckdb, 'typing') else 0,
}
""",
        "        _value.execute('create table if not exists u (b)') if hasattr(_value, 'execute') else None",
    ),
}

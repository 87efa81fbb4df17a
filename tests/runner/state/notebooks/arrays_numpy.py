# NumPy: views, broadcasting, masks, structured arrays, linear algebra, random streams.
# %%
import numpy as np
np.random.seed(1)
a = np.arange(200_000).reshape(400, 500)
row, column, block = a[3], a[:, 4], a[10:20, 10:20]
# %%
a[3, 4] = -1
print(row[4], column[3], block.base is not None, np.shares_memory(block, a))
# %%
block += 1000
a[12, 12], a[9, 9]
# %%
flat = a.ravel()
flat[:3] = 7
print(a[0, :4], flat.base is a or flat.base is a.base)
# %%
mask = a > 150_000
picked = a[mask]
picked[:] = 0
print(mask.sum(), a.max(), picked.any())
# %%
a[mask] = 0
a.sum()
# %%
people = np.array([("Ada", 36), ("Bob", 41)], dtype=[("name", "U8"), ("age", "i4")])
ages = people["age"]
ages += 1
people
# %%
record = people[0]
record["age"] = 99
people["age"], record
# %%
m = np.random.rand(4, 4)
q, r = np.linalg.qr(m)
np.allclose(q @ r, m)
# %%
first = np.random.normal(size=3)
generator = np.random.default_rng(5)
one = generator.integers(0, 100, 5)
# %%
two = generator.integers(0, 100, 5)
second = np.random.normal(size=3)
print(one, two, first.round(4), second.round(4))
# %%
np.set_printoptions(precision=2, suppress=True)
m
# %%
masked = np.ma.masked_less(np.arange(5.0), 2)
masked[3] = np.ma.masked
objects = np.empty(3, dtype=object)
objects[:] = [[1], {"k": row}, None]
masked, objects[0], m * 100
# %%
objects[0].append(2)
objects[1]["k"][0] = 12345
print(a[3, 0], objects[0])
# %%
stamps = np.arange("2024-01-01", "2024-01-08", dtype="datetime64[D]")
weekdays = np.is_busday(stamps)
stamps[weekdays]
# %%
big = np.lib.stride_tricks.sliding_window_view(np.arange(8), 3)
total = np.einsum("ij->i", big)
it = np.nditer(np.arange(3))
fortran = np.asfortranarray(m)
print(total, fortran.flags.f_contiguous, big.strides)

# Plotting: figures kept open over cells, axes changed later, rcParams, legends.
# %%
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 2 * np.pi, 50)
# %%
fig, ax = plt.subplots()
line, = ax.plot(x, np.sin(x), label="sin")
# %%
ax.plot(x, np.cos(x), "r--", label="cos")
ax.set_title("Waves")
print(len(ax.lines), ax.get_title(), fig.axes[0] is ax, ax.lines[0] is line)
# %%
line.set_ydata(np.sin(2 * x))
ax.legend(loc="upper right")
print([t.get_text() for t in ax.get_legend().get_texts()])
# %%
plt.rcParams["lines.linewidth"] = 3
plt.figure("bars")
plt.bar(["a", "b"], [3, 5])
print(plt.get_fignums(), plt.gcf().get_label())
# %%
plt.title("Counts")
plt.gca().set_ylim(0, 10)
print(plt.rcParams["lines.linewidth"], plt.gca().get_title(), plt.gca().get_ylim())
# %%
grid, axes = plt.subplots(2, 2, figsize=(4, 4), sharex=True)
for k, a in enumerate(axes.flat):
    a.hist(np.random.default_rng(k).normal(size=100), bins=5)
counts = [[p.get_height() for p in a.patches] for a in axes.flat]
print(counts[0])
# %%
axes[0, 0].set_xlim(-1, 1)
print(axes[1, 0].get_xlim(), axes[0, 0] is grid.axes[0])
# %%
scatter = axes[0, 1].scatter([1, 2], [3, 4], c=[0.1, 0.9], cmap="viridis")
colours = scatter.get_cmap()(0.5)
print(tuple(round(c, 3) for c in colours))
# %%
plt.close("bars")
print(plt.get_fignums(), fig.number, plt.fignum_exists(fig.number))
# %%
fig.canvas.draw()
image = np.asarray(fig.canvas.buffer_rgba())
print(image.shape, int(image.sum()))
# %%
def show(a, what, **style):
    return a.plot(x, what(x), **style)[0]
curve = show(ax, np.tanh, color="green")
print(curve.get_color(), len(ax.lines), curve.axes is ax)

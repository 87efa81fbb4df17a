# Polars: expressions, lazy frames, joins, strings, windows; Arrow beside it.
# %%
import polars as pl

df = pl.DataFrame({
    "id": range(1, 9),
    "team": ["red", "blue", "red", "green", "blue", "red", "green", "blue"],
    "score": [3.5, 4.0, 2.5, 5.0, 1.5, 4.5, None, 3.0],
})
df
# %%
by_team = df.group_by("team", maintain_order=True).agg(pl.col("score").mean().alias("mean"), pl.len())
by_team
# %%
lazy = df.lazy().filter(pl.col("score") > 2).with_columns((pl.col("score") * 2).alias("double"))
# %%
lazy.collect()
# %%
best = pl.col("score").max().over("team").alias("best")
df = df.with_columns(best)
df.head(3)
# %%
colours = pl.DataFrame({"team": ["red", "blue"], "rgb": ["#f00", "#00f"]})
joined = df.join(colours, on="team", how="left")
joined.null_count()
# %%
old = df
df = df.with_columns(pl.col("team").cast(pl.Categorical), day=pl.date(2024, 1, pl.col("id")))
print(df.schema, old.columns)
# %%
wide = df.pivot(on="team", index="id", values="score").sort("id")
wide.shape
# %%
context = pl.SQLContext(frame=old)
context.execute("select team, count(*) as n from frame group by team order by team", eager=True)
# %%
series = pl.Series("x", [1, 2, 3])
series[0] = 10
lists = pl.DataFrame({"l": [[1, 2], [3]], "s": [{"a": 1}, {"a": 2}]})
lists.explode("l").unnest("s")
# %%
import pyarrow as pa
import pyarrow.compute as pc

table = joined.to_arrow()
chunked = table["score"]
print(table.num_rows, pc.sum(chunked).as_py(), chunked.null_count)
# %%
table = table.append_column("twice", pc.multiply(chunked, 2))
print(table.column_names, series.sum())

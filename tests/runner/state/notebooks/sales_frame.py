# Exploring a table of sales with pandas: clean, group, pivot, merge, resample.
# %%
import numpy as np
import pandas as pd

rng = np.random.default_rng(42)
n = 2_000
sales = pd.DataFrame({
    "day": pd.date_range("2023-01-01", periods=n, freq="6h"),
    "shop": rng.choice(["north", "south", "east"], n),
    "item": rng.choice(list("ABCDE"), n),
    "amount": rng.integers(1, 20, n),
    "price": rng.normal(10, 2, n).round(2),
})
sales.head()
# %%
sales.loc[::97, "price"] = np.nan
sales.isna().sum()
# %%
missing = sales[sales["price"].isna()]
medians = sales.groupby("item")["price"].transform("median")
sales["price"] = sales["price"].fillna(medians)
len(missing), sales.isna().sum().sum()
# %%
sales["total"] = sales["amount"] * sales["price"]
by_shop = sales.groupby("shop")
by_shop["total"].agg(["sum", "mean", "count"]).round(2)
# %%
table = sales.pivot_table(index="shop", columns="item", values="total", aggfunc="sum").round(1)
table
# %%
bonus = 1.1
big = sales.query("total > 150 and shop == 'north'")
bigger = sales.query("total * @bonus > 250")
print(len(big), len(bigger))
# %%
daily = sales.set_index("day")["total"].resample("D").sum()
weekly = daily.rolling(7).mean().dropna()
weekly.tail(3).round(2)
# %%
shops = pd.DataFrame({"shop": ["north", "south", "west"], "manager": ["Ada", "Bob", "Cleo"]})
merged = sales.merge(shops, on="shop", how="outer", indicator=True)
merged["_merge"].value_counts()
# %%
sales["shop"] = sales["shop"].astype("category")
sales["shop"] = sales["shop"].cat.add_categories("west")
codes = sales["shop"].cat.codes
sales.dtypes
# %%
pd.set_option("display.max_rows", 6)
sales.sort_values("total", ascending=False)[["day", "item", "total"]]
# %%
sales.drop(columns="total", inplace=True)
del big, bigger
view = sales.iloc[:5]
sales.iloc[0, 3] = 999
print(view.iloc[0, 3], sales.iloc[0, 3], pd.get_option("display.max_rows"))
# %%
styled = {name: group["amount"].describe() for name, group in sales.groupby("item")}
stats = pd.concat(styled, axis=1).round(2)
stats

# SQL from Python: sqlite3 in memory and in a file, DuckDB over frames, SQLAlchemy.
# %%
import sqlite3

memory = sqlite3.connect(":memory:")
memory.row_factory = sqlite3.Row
memory.execute("create table t (id integer primary key, name text, n real)")
# %%
memory.executemany("insert into t (name, n) values (?, ?)", [("a", 1.5), ("b", 2.5), ("c", None)])
memory.commit()
# %%
rows = memory.execute("select * from t where n > 1").fetchall()
print([dict(row) for row in rows])
# %%
disk = sqlite3.connect("notes.db")
disk.execute("create table notes (text)")
disk.execute("insert into notes values ('hello')")
disk.commit()
# %%
disk.execute("insert into notes values ('again')")
disk.commit()
print(disk.execute("select count(*) from notes").fetchone())
# %%
import duckdb
import pandas as pd

cities = pd.DataFrame({"city": ["Oslo", "Rome", "Lima"], "people": [0.7, 2.8, 10.0]})
rivers = pd.DataFrame({"river": ["Tiber", "Rimac"], "city": ["Rome", "Lima"]})
# %%
duckdb.sql("select city, river from cities join rivers using (city) order by city").fetchall()
# %%
con = duckdb.connect("store.duckdb")
con.execute("create table visits as select city, people * 10 as visits from cities")
con.execute("select sum(visits) from visits").fetchone()
# %%
con.execute("insert into visits values ('Bonn', 1)")
big = con.sql("select * from visits where visits > 5 order by visits").df()
big
# %%
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, select, text

engine = create_engine("sqlite:///shop.db")
meta = MetaData()
users = Table("users", meta, Column("id", Integer, primary_key=True), Column("name", String(20)))
meta.create_all(engine)
# %%
with engine.begin() as link:
    link.execute(users.insert(), [{"name": "Ada"}, {"name": "Bob"}])
statement = select(users.c.name).order_by(users.c.id)
# %%
with engine.connect() as link:
    names = [row.name for row in link.execute(statement)]
print(names, str(statement).replace("\n", " "))
# %%
memory.execute("update t set n = 9 where name = 'c'")
memory.commit()
frame = pd.read_sql_query("select name, n from t order by id", memory)
frame
# %%
back = con.sql("select count(*) from visits").fetchone()
print(back, memory.total_changes >= 0, disk.execute("select text from notes").fetchall())

# Dates, time zones, decimals, fractions, locale, contexts.
# %%
import calendar
import datetime as dt
import decimal
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

decimal.getcontext().prec = 6
start = dt.datetime(2024, 2, 28, 23, 30, tzinfo=ZoneInfo("UTC"))
# %%
oslo = start.astimezone(ZoneInfo("Europe/Oslo"))
print(oslo, oslo.tzinfo is ZoneInfo("Europe/Oslo"), oslo == start)
# %%
Decimal(1) / Decimal(7)
# %%
steps = [start + dt.timedelta(hours=6 * k) for k in range(4)]
[s.strftime("%a %H:%M") for s in steps]
# %%
decimal.getcontext().rounding = decimal.ROUND_UP
price = Decimal("19.999").quantize(Decimal("0.01"))
price, decimal.getcontext().prec
# %%
with decimal.localcontext() as ctx:
    ctx.prec = 30
    long = Decimal(2).sqrt()
print(long, +long, Fraction(3, 4) + Fraction(1, 6))
# %%
import locale
import os
import time

os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
time.strftime("%Z", time.localtime(0))
# %%
print(dt.datetime.fromtimestamp(0), calendar.isleap(2024), time.tzname[0])
# %%
import pandas as pd

stamps = pd.date_range("2024-03-30", periods=4, freq="12h", tz="Europe/Berlin")
series = pd.Series(range(4), index=stamps)
series.tz_convert("UTC")
# %%
offset = pd.offsets.BusinessDay(3)
period = pd.Period("2024-02", "M")
delta = stamps[1] - stamps[0]
print(stamps[0] + offset, period.end_time, delta, series.index.freq)
# %%
series.iloc[0] = 50
cal = calendar.TextCalendar(firstweekday=6)
print(series.sum(), cal.formatmonth(2024, 2).splitlines()[0].strip(), locale.getlocale()[1] is None)
# %%
try:
    Decimal(1) / 0
except decimal.DivisionByZero as error:
    kind = type(error)
flags = decimal.getcontext().flags[decimal.DivisionByZero]
print(kind, flags, price + 1)

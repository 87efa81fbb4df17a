# asyncio at top level, context variables, queues, locks, exceptions and groups.
# %%
import asyncio
import contextlib
import contextvars
import threading

log = []
user = contextvars.ContextVar("user", default="nobody")
# %%
async def work(name, delay=0):
    await asyncio.sleep(delay)
    log.append(name)
    return name.upper()

await work("first")
# %%
results = await asyncio.gather(work("a"), work("b", 0.01), work("c"))
results, sorted(log)
# %%
async def ticks(n):
    for k in range(n):
        yield k
        await asyncio.sleep(0)

[k async for k in ticks(3)]
# %%
@contextlib.asynccontextmanager
async def opened(name):
    log.append(f"open {name}")
    try:
        yield name
    finally:
        log.append(f"close {name}")

async with opened("door") as door:
    print(door)
log[-2:]
# %%
token = user.set("Ada")
user.get()
# %%
lock = threading.RLock()
event = threading.Event()
event.set()
with lock:
    locked = True
print(event.is_set())
# %%
queue = asyncio.Queue()
for k in range(3):
    await queue.put(k)
queue.qsize()
# %%
got = [await queue.get() for _ in range(2)]
print(got, queue.qsize())
# %%
async def fail():
    raise ValueError("broken")
outcome = await asyncio.gather(work("ok"), fail(), return_exceptions=True)
outcome
# %%
await fail()
# %%
try:
    raise ExceptionGroup("many", [ValueError(1), ValueError("x")])
except* ValueError as group:
    caught = group
print(repr(caught), len(log))
# %%
try:
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise RuntimeError("outer") from error
except RuntimeError as error:
    chained = error
print(repr(chained.__cause__), chained.args)
# %%
thread = threading.Thread(target=log.append, args=("from thread",))
thread.start()
thread.join()
log[-1], thread.is_alive()
# %%
print(thread.is_alive(), repr(outcome[1]), event.is_set(), isinstance(queue, asyncio.Queue))

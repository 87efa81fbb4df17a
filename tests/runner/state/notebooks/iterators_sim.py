# Iterators and simulation: random walks, queues, heaps, generators across cells.
# %%
import collections
import heapq
import itertools
import random

random.seed(11)
ids = itertools.count(100)
ring = itertools.cycle("abc")
# %%
jobs = []
for _ in range(5):
    heapq.heappush(jobs, (random.randint(1, 9), next(ids)))
jobs
# %%
done = collections.deque(maxlen=3)
while len(jobs) > 2:
    done.append(heapq.heappop(jobs))
print(done, next(ring), next(ring), next(ids))
# %%
def walk(start, step=1):
    at = start
    while True:
        move = yield at
        at += move if move is not None else random.choice([-step, step])

walker = walk(0)
path = [next(walker) for _ in range(6)]
path
# %%
path += [walker.send(50), next(walker)]
print(path, next(ring))
# %%
numbers = iter(range(10))
evens = filter(lambda n: n % 2 == 0, numbers)
squares = map(lambda n: n * n, evens)
next(squares), next(squares)
# %%
print(next(numbers), list(squares))
# %%
left, right = itertools.tee("spam", 2)
next(left)
# %%
print(list(left), list(right))
# %%
groups = {k: list(g) for k, g in itertools.groupby(sorted("mississippi"))}
pairs = itertools.combinations("abcd", 2)
list(itertools.islice(pairs, 3))
# %%
rest = list(pairs)
enumerated = enumerate(["x", "y", "z"], 5)
next(enumerated)
# %%
print(rest, next(enumerated), random.random(), random.sample(range(100), 3))
# %%
class Queue:
    def __init__(self):
        self.waiting = collections.deque()
        self.served = 0
    def __iter__(self):
        while self.waiting:
            self.served += 1
            yield self.waiting.popleft()

queue = Queue()
queue.waiting.extend("pqr")
serving = iter(queue)
next(serving)
# %%
queue.waiting.append("s")
print(next(serving), queue.served, len(queue.waiting))
# %%
print(list(serving), queue.served)
# %%
total = sum(random.gauss(0, 1) for _ in range(100))
state = random.getstate()
own = random.Random(5)
draws = [own.random() for _ in range(3)]
round(total, 6)
# %%
random.setstate(state)
draws.append(own.random())
print(round(random.random(), 6), [round(d, 4) for d in draws])

# Dataclasses, enums, named tuples, typed dicts, protocols, pattern matching.
# %%
import enum
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple, Protocol, TypedDict

class Colour(enum.Enum):
    RED = 1
    GREEN = 2

    @property
    def hex(self):
        return {"RED": "#f00", "GREEN": "#0f0"}[self.name]

class Right(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
# %%
@dataclass(order=True)
class Item:
    price: float
    name: str = field(compare=False)
    tags: list = field(default_factory=list, compare=False)

@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
# %%
items = [Item(3.5, "pen"), Item(1.0, "gum", ["sweet"])]
min(items), Colour.RED.hex, Right.READ | Right.WRITE
# %%
items[0].tags.append("blue")
favourite = items[0]
colour = Colour("GREEN" and 2)
print(colour is Colour.GREEN, favourite is items[0], items)
# %%
origin = Point(0)
moved = replace(origin, x=5)
try:
    origin.x = 1
except Exception as error:
    print(type(error).__name__, error)
# %%
places = {origin: "home", moved: "work"}
print(places[Point(5, 0)], hash(origin) == hash(Point(0)), asdict(items[1]))
# %%
class Pair(NamedTuple):
    left: int
    right: int = 2

class Movie(TypedDict, total=False):
    title: str
    year: int

class Sized(Protocol):
    def size(self) -> int: ...
# %%
pair = Pair(1)
movie: Movie = {"title": "Alien"}
movie["year"] = 1979
pair, pair._asdict(), movie
# %%
def describe(thing):
    match thing:
        case Point(x=0, y=0):
            return "origin"
        case Point(x=x):
            return f"at {x}"
        case [first, *rest]:
            return f"{first} and {len(rest)} more"
        case {"title": str(title)}:
            return title
        case Colour.RED | Colour.GREEN:
            return thing.hex
        case _:
            return "?"
[describe(t) for t in (origin, moved, [1, 2, 3], movie, colour, None)]
# %%
class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"
print(colour, colour in list(Colour), type(colour) is Colour, describe(Colour.RED))
# %%
rights = Right.READ
rights |= Right.WRITE
print(rights, Right.READ in rights, [m.name for m in Right], Pair.__annotations__)
# %%
items.sort()
__annotations__ if "__annotations__" in globals() else None

# Classes: inheritance, properties, dunder methods, class attributes, redefinition.
# %%
import math
from abc import ABC, abstractmethod
from functools import total_ordering

registry = {}
# %%
@total_ordering
class Shape(ABC):
    count = 0

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        registry[cls.__name__] = cls

    def __init__(self, name):
        self.name = name
        type(self).count += 1

    @abstractmethod
    def area(self): ...

    def __eq__(self, other):
        return self.area() == other.area()

    def __lt__(self, other):
        return self.area() < other.area()

    def __repr__(self):
        return f"{type(self).__name__}({self.name}, {self.area():.2f})"
# %%
class Circle(Shape):
    def __init__(self, r):
        super().__init__("circle")
        self._r = r

    @property
    def r(self):
        return self._r

    @r.setter
    def r(self, value):
        if value <= 0:
            raise ValueError("radius must be positive")
        self._r = value

    def area(self):
        return math.pi * self._r**2


class Square(Shape):
    __slots__ = ("side",)

    def __init__(self, side):
        super().__init__("square")
        self.side = side

    def area(self):
        return self.side**2

    @classmethod
    def unit(cls):
        return cls(1)

    @staticmethod
    def corners():
        return 4
# %%
shapes = [Circle(1), Square(3), Square.unit()]
sorted(shapes)
# %%
shapes[0].r = 2
print(shapes[0].r, registry, Circle.count, Square.count, Shape.count)
# %%
try:
    shapes[0].r = -1
except ValueError as error:
    problem = error
print(repr(problem))
# %%
shapes[0].r = -5
# %%
class Square(Square):
    def area(self):
        return 2 * super().area()
old, new = shapes[1], Square(3)
print(type(old) is Square, isinstance(new, type(old)), old.area(), new.area())
# %%
class Stack(list):
    def push(self, x):
        self.append(x)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.clear()
# %%
stack = Stack().push(1).push(2)
alias = stack
alias.push(3)
print(stack, alias is stack, len(stack))
# %%
with stack as s:
    print(s.pop())
print(stack, s is alias)
# %%
class Meta(type):
    def __call__(cls, *args):
        if not hasattr(cls, "_one"):
            cls._one = super().__call__(*args)
        return cls._one
class Config(metaclass=Meta):
    def __init__(self):
        self.values = {}
# %%
Config().values["debug"] = True
# %%
print(Config() is Config(), Config().values, type(Config).__name__, Shape.__mro__[1:])
# %%
Circle.count = 100
Circle.describe = lambda self: f"r={self.r}"
shapes[0].describe()
# %%
print(Circle.count, shapes[0].describe(), registry["Circle"] is Circle, registry["Square"] is Square)

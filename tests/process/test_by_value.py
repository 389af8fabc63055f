"""What no clean process could import arrives by value: classes, circular functions, whatever a script defines (C2)."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import handlers_for_tests as handlers
import pytest

from dispatcher import Dispatcher, Registry
from sandbox import Sandbox

HERE = os.path.dirname(handlers.__file__)

SCRIPT = """
    import abc, dataclasses, enum, functools, sys, threading, typing
    from collections import namedtuple
    from dataclasses import dataclass, field
    from typing import Any, Generic, Literal, NamedTuple, Optional, TypeVar
    from typing_extensions import TypedDict
    from pydantic import BaseModel, RootModel
    from dispatcher import Dispatcher, Registry

    print("script runs", flush=True)

    class Colour(enum.Enum):
        RED = "red"
        BLUE = "blue"
        def shout(self): return self.name + "!"

    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 2

    class Word(str, enum.Enum):
        A = "a"

    class Bits(enum.Flag):
        R = 1
        W = 2

    class Planet(enum.Enum):
        EARTH = (3, 6)
        def __new__(cls, order, mass):
            made = object.__new__(cls)
            made._value_ = order
            made.mass = mass
            return made

    class Model(BaseModel):
        colour: Colour
        kind: Literal["a", "b"] = "a"
        children: list["Model"] = []
        def total(self): return 1 + sum(child.total() for child in self.children)

    class SubModel(Model):
        extra: int = 3

    T = TypeVar("T")

    class Box(BaseModel, Generic[T]):
        inside: T

    class Numbers(RootModel[list[int]]):
        pass

    @dataclass
    class Data:
        n: int
        tags: list = field(default_factory=list)

    @dataclass(frozen=True, slots=True)
    class Frozen:
        n: int

    class Options(TypedDict, total=False):
        depth: int

    class Point(NamedTuple):
        x: int
        y: int = 2
        def area(self): return self.x * self.y

    Old = namedtuple("Old", "a b", defaults=[7])

    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    class Meta(type):
        def __new__(meta, name, bases, body, **options):
            return super().__new__(meta, name, bases, body | {"made_by": meta.__name__})

    class Square(Shape):
        count = 0
        def __init__(self, side): self.side = side
        def area(self): return self.side ** 2
        @property
        def double(self): return self.side * 2
        @classmethod
        def unit(cls): return cls(1)
        @staticmethod
        def name(): return "square"
        @functools.cached_property
        def cached(self): return self.side + 1
        def parent(self): return super().__repr__()[:1]

    class Made(metaclass=Meta):
        pass

    def even(n): return True if n == 0 else odd(n - 1)
    def odd(n): return False if n == 0 else even(n - 1)

    def make():
        def fact(n): return 1 if n < 2 else n * fact(n - 1)
        return fact
    fact = make()

    @functools.lru_cache(maxsize=10)
    def cached(n): return n + 1

    @functools.singledispatch
    def kind(value): return "other"
    @kind.register
    def _(value: int): return "int"

    lock, again = threading.Lock(), threading.RLock()
    def locked():
        with lock, again:
            return True

    registry = Registry()

    @registry.tool
    def paint(colour: Colour, level: Level = Level.LOW, word: Word = Word.A) -> Any:
        return [colour is Colour.RED, colour.shout(), level is Level.HIGH, word is Word.A, type(colour) is Colour]

    @registry.tool
    def model(model: Model, box: Box[int], numbers: Numbers) -> Any:
        return [isinstance(model, Model), model.total(), model.colour is Colour.BLUE, box.inside, numbers.root]

    @registry.tool
    def data(data: Data, options: Options, point: Point, best: Optional[Data] = None) -> Any:
        return [isinstance(data, Data), data.n, options, point.area(), dataclasses.asdict(data), best]

    @registry.tool
    def uses() -> Any:
        print("out"); print("err", file=sys.stderr)
        square = Square.unit()
        return [even(10), fact(5), cached(1), kind(1), kind(""), locked(), square.area(), square.double, square.name(),
                square.cached, square.parent(), Made.made_by, isinstance(square, Shape), Frozen(3).n, Old(1).b,
                (Bits.R | Bits.W).value, Planet.EARTH.mass, Planet(3) is Planet.EARTH, SubModel(colour="red").extra,
                sorted(member.name for member in Colour)]

    try:
        Shape()
    except TypeError:
        pass

    calls = [
        ("paint", '{"colour":"red","level":2}'),
        ("model", '{"model":{"colour":"blue","children":[{"colour":"red"}]},"box":{"inside":4},"numbers":[1,2]}'),
        ("data", '{"data":{"n":1,"tags":["a"]},"options":{"depth":3},"point":[5]}'),
        ("uses", "{}"),
        ("paint", '{"colour":"green"}'),
    ]
    dispatcher = Dispatcher(registry, **ENGINE)
    for name, arguments in calls:
        print(dispatcher.execute(name, arguments).to_text(), flush=True)
"""
EXPECTED = [
    "script runs",
    '[true,"RED!",true,true,true]',
    "[true,2,true,4,[1,2]]",
    '[true,1,{"depth":3},10,{"n":1,"tags":["a"]},null]',
    '[true,120,2,"int","other",true,1,2,"square",2,"<","Meta",true,3,7,3,6,true,3,["BLUE","RED"]]',
    "Error: invalid arguments: colour: Input should be 'red' or 'blue'.",
]


def run_script(text, engine, folder):
    """Run a script that has no main guard with an engine, to its end."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(text).replace("**ENGINE", f"**{engine!r}"))
    return subprocess.run(
        [sys.executable, str(script)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": os.path.dirname(HERE), "PATH": "/usr/bin:/bin"},
    )


def test_classes_and_circular_functions_of_a_script_arrive(engine, tmp_path):
    """Enums, models, dataclasses, tuples, metaclasses and functions that call each other keep their identity."""
    done = run_script(SCRIPT, engine, tmp_path)
    assert done.stdout.splitlines() == EXPECTED, done.stderr


BELOW = """
    from dispatcher import Dispatcher, Registry
    registry = Registry()

    @registry.tool
    def fact(n: int) -> int:
        return 1 if n < 2 else n * fact(n - 1)

    @registry.tool
    def uses(n: int) -> int:
        return helper(n) + Known.bonus

    @registry.tool
    def late(n: int) -> int:
        return later(n)

    @registry.tool
    def never(n: int) -> int:
        return nowhere(n)

    def build():
        @registry.tool
        def inner(n: int) -> int:
            return 0 if n == 0 else 1 + inner(n - 1)
    build()

    def helper(n):
        return other(n) * 2

    def other(n):
        return n + 1

    class Known:
        bonus = 100

    dispatcher = Dispatcher(registry, **ENGINE)

    def later(n):
        return -n

    for name in registry.names():
        print(dispatcher.execute(name, {"n": 5}).to_text().partition(" (")[0], flush=True)
"""


def test_functions_may_use_themselves_and_what_stands_below(engine, tmp_path):
    """A decorated function of a script calls itself and helpers defined further down, as anywhere in Python."""
    done = run_script(BELOW, engine, tmp_path)
    assert done.stdout.splitlines() == ["120", "112", "-5", "Error: the tool failed", "5"], done.stderr


def test_two_classes_of_one_name_stay_two(make_box, nothing_left):
    """A class is told by itself, not by its name."""

    def make(words):
        class Same:
            said = words

        return Same

    first, second = make("one"), make("two")

    def tell():
        return [first.said, second.said, first is second, type(first()).__name__]

    with make_box() as box:
        assert box.run(tell).value == ["one", "two", False, "Same"]


def test_captured_state_is_that_of_the_moment(make_box, nothing_left):
    """What a worker changes, in a captured object or in a class, is gone with it (C2)."""

    class Counter:
        total = 0

    seen = []

    def count():
        Counter.total += 1
        seen.append(1)
        return [Counter.total, len(seen)]

    with make_box() as box:
        assert [box.run(count).value for _ in range(3)] == [[1, 1]] * 3
    assert (Counter.total, seen) == (0, [])


def wait_until(condition, timeout_s=20.0):
    """Wait for what the keeper does, which nobody is told of."""
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    return condition()


def captured(value):
    """Return a local function that closes over a value."""

    def handler():
        return str(value)

    return handler


def test_what_cannot_travel_is_named_with_its_remedy(tmp_path):
    """A live object of this process is refused at registration: its name, its type and what to do."""
    import socket

    schema = {"type": "object", "properties": {}}
    with (
        socket.socket() as channel,
        (tmp_path / "file").open("w") as file,
        Sandbox() as box,
        Dispatcher(Registry()) as live,
    ):
        generator = (n for n in range(3))
        for value in (channel, file, box, live, generator, threading.current_thread()):
            with pytest.raises(ValueError, match="'value'") as caught:
                Registry().register("t", schema, captured(value))
            assert "inside the handler" in str(caught.value), value


def test_passing_functions_do_not_pile_up(make_box, nothing_left):
    """A program that runs a new lambda each time keeps a few processes, not a set for each."""
    with make_box() as box:
        assert [box.run(captured(index)).value for index in range(9)] == [str(index) for index in range(9)]
        assert wait_until(lambda: box.statistics().zygotes <= 4)
        assert box.statistics().spares <= 4

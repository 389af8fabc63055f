"""Handlers whose results are of every kind: what is JSON, what becomes JSON, and what is refused with its place (C30)."""

import collections
import dataclasses
import datetime
import decimal
import enum
import pathlib
import types
import uuid


class LyingInt(int):
    def __str__(self):
        return "evil"

    __repr__ = __str__

    def __int__(self):
        return 666

    __index__ = __int__


class LyingText(str):
    def __str__(self):
        return "evil"

    def __iter__(self):
        return iter("evil")

    def encode(self, *arguments):
        return b"evil"


class LyingList(list):
    def __iter__(self):
        return iter([1, 2, 3])

    def __len__(self):
        return 9


class LyingDict(dict):
    def items(self):
        return [("evil", 1)]

    def __iter__(self):
        return iter(["evil"])


class LyingFloat(float):
    def __repr__(self):
        return "evil"

    def __float__(self):
        return 6.0


@dataclasses.dataclass
class Data:
    a: int
    b: object = None


Pair = collections.namedtuple("Pair", "a b")


class Choice(enum.Enum):
    NUMBER = 1
    TEXT = "x"
    PAIR = (1, 2)


class Thing:
    pass


Float64 = type("float64", (), {"__module__": "numpy"})


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def circle():
    value = {"in": []}
    value["in"].append(value)
    return value


def counted():
    yield 1
    yield Data(2)


async def counted_slowly():
    yield 1
    yield 2


def endless():
    while True:
        yield "x" * 1000


SHARED = [1]
GOOD = {
    "int_subclass": (lambda: LyingInt(5), 5),
    "str_subclass": (lambda: LyingText("hi"), "hi"),
    "list_subclass": (lambda: LyingList([7]), [7]),
    "dict_subclass": (lambda: LyingDict(a=2), {"a": 2}),
    "float_subclass": (lambda: LyingFloat(1.5), 1.5),
    "key_subclass": (lambda: {LyingText("k"): 1}, {"k": 1}),
    "dataclass": (lambda: Data(1, Data(2)), {"a": 1, "b": {"a": 2, "b": None}}),
    "named_tuple": (lambda: Pair(1, (2,)), [1, [2]]),
    "enums": (lambda: list(Choice), [1, "x", [1, 2]]),
    "decimal": (lambda: decimal.Decimal("1.50"), "1.50"),
    "uuid": (lambda: uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "path": (lambda: pathlib.PurePosixPath("/a/b"), "/a/b"),
    "dates": (
        lambda: [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.date(2020, 1, 1), datetime.time(1, 2)],
        ["2020-01-01T00:00:00+00:00", "2020-01-01", "01:02:00"],
    ),
    "duration": (lambda: datetime.timedelta(days=1, seconds=2), "P1DT2S"),
    "deep": (lambda: nested(128), nested(128)),
    "deep_data": (lambda: nested_data(127), None),
    "big": (lambda: 10**4299, 10**4299),
    "generator": (counted, [1, {"a": 2, "b": None}]),
    "async_generator": (counted_slowly, [1, 2]),
    "iterator": (lambda: map(str, [1]), ["1"]),
    "none": (lambda: None, None),
    "minus_zero": (lambda: -0.0, -0.0),
    "shared": (lambda: [SHARED, SHARED], [[1], [1]]),
}
BAD = {
    "set": (lambda: {"a": {1}}, "/a"),
    "bytes": (lambda: [b"x"], "/0"),
    "object": (lambda: {"rows": [1, Thing()]}, "/rows/1"),
    "numpy": (lambda: {"a/b": [Float64()]}, "/a~1b/0"),
    "nan": (lambda: [float("nan")], "/0"),
    "infinity": (lambda: {"a": float("inf")}, "/a"),
    "number_key": (lambda: {1: 2}, ""),
    "enum_key": (lambda: {"a": {Choice.TEXT: 1}}, "/a"),
    "circle": (circle, "/in/0"),
    "too_deep": (lambda: nested(129), "/0" * 128),
    "far_too_deep": (lambda: nested(100_000), "/0" * 128),
    "surrogate": (lambda: {"a": ["x", "\ud800"]}, "/a/1"),
    "surrogate_key": (lambda: {"a": {"\ud800": 1}}, "/a"),
    "too_big": (lambda: 10**4300, ""),
    "not_finite": (lambda: decimal.Decimal("NaN"), ""),
    "complex": (lambda: 1j, ""),
    "range": (lambda: range(3), ""),
    "mapping": (lambda: types.MappingProxyType({"a": 1}), ""),
    "function": (lambda: print, ""),
    "class": (lambda: [int], "/0"),
    "exception": (lambda: ValueError("x"), ""),
}


def nested_data(levels):
    value = None
    for _ in range(levels):
        value = Data(1, value)
    return value


def give(kind):
    """Return the result of that name."""
    return (GOOD | BAD)[kind][0]()


def deepest():
    """Nest as deep as a result may."""
    return nested(127)

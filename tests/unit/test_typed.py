"""Typed tools: what their errors look like, what they take, and what may not run in the host (C3, C5, C16)."""

import datetime
import decimal
import enum
import functools
import ipaddress
import json
import pathlib
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen, MultipleOf, Predicate
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    EncodedBytes,
    Field,
    FilePath,
    ImportString,
    IPvAnyAddress,
    IPvAnyNetwork,
    Json,
    PastDate,
    PlainValidator,
    PrivateAttr,
    StringConstraints,
    Tag,
    WrapValidator,
    field_validator,
    model_validator,
)
from typing_extensions import TypedDict

from dispatcher import Registry


class Colour(enum.Enum):
    R = "r"
    G = "g"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    when: datetime.date = datetime.date(2020, 1, 1)


@dataclass
class Size:
    width: int
    unit: Literal["cm", "m"] = "cm"


class Options(TypedDict, total=False):
    depth: int


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int
    cat: str = ""


class Dog(BaseModel):
    kind: Literal["dog"]
    born: datetime.date


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Node(BaseModel):
    value: int
    children: list["Node"] = []


def any_handler(**arguments):
    return arguments


def typed(annotation, **options):
    """Return a registry with one typed tool "t" of one parameter "x"."""

    def handler(x):
        return None

    handler.__annotations__["x"] = annotation
    registry = Registry()
    registry.tool(name="t", **options)(handler)
    return registry


def problems_of(annotation, text):
    """Return the (path, keyword) of what is wrong with a value, as JSON text."""
    return [(error.path, error.keyword) for error in typed(annotation).validate("t", f'{{"x":{text}}}').errors]


@pytest.mark.parametrize(
    ("annotation", "text", "path", "keyword"),
    [
        (int, '"1"', "/x", "type"),
        (int, "true", "/x", "type"),
        (int, "1.5", "/x", "type"),
        (float, "true", "/x", "type"),
        (bool, "1", "/x", "type"),
        (None, "1", "/x", "type"),
        (int | None, '"a"', "/x", "type"),
        (list[int], "{}", "/x", "type"),
        (dict[str, int], "[]", "/x", "type"),
        (frozenset[int], '"a"', "/x", "type"),
        (set[int], '["a"]', "/x/0", "type"),
        (tuple[int, str], "[1]", "/x", "minItems"),
        (tuple[int, str], '[1,"a",1]', "/x", "maxItems"),
        (tuple[int, str], '["a","b"]', "/x/0", "type"),
        (Annotated[dict[str, int], MinLen(1)], "{}", "/x", "minProperties"),
        (Annotated[dict[str, int], MaxLen(1)], '{"a":1,"b":2}', "/x", "maxProperties"),
        (dict[Annotated[str, MinLen(2)], int], '{"a":1}', "/x/a", "propertyNames"),
        (dict[Annotated[str, MinLen(2)], dict[str, int]], '{"ab":{"[key]":"x"}}', "/x/ab/[key]", "type"),
        (dict[int, int], '{"a":1}', "/x/a", "propertyNames"),
        (Colour, '"x"', "/x", "enum"),
        (Colour, "1", "/x", "type"),
        (Level, "3", "/x", "enum"),
        (Level, "true", "/x", "type"),
        (Literal[1, "a"], "2", "/x", "enum"),
        (Literal[1, "a"], "true", "/x", "type"),
        (Literal[True], "1", "/x", "type"),
        (int | str, "[]", "/x", "anyOf"),
        (int | list[int], '["a"]', "/x", "anyOf"),
        (dict[str, int | str], '{"int":[]}', "/x/int", "anyOf"),
        (Pet, "[]", "/x", "anyOf"),
        (Pet, "{}", "/x", "anyOf"),
        (Pet, '{"kind":"cow"}', "/x", "anyOf"),
        (Pet, '{"kind":"cat","cat":5,"lives":1}', "/x", "anyOf"),
        (list[Pet], '[{"kind":"cat","lives":1},{"kind":"dog"}]', "/x/1", "anyOf"),
        (Point, "[]", "/x", "minItems"),
        (Point, "[1,2,3]", "/x", "maxItems"),
        (Point, '{"x":1}', "/x", "type"),
        (Point, '["a"]', "/x/0", "type"),
        (Size, "1", "/x", "type"),
        (Size, "{}", "/x/width", "required"),
        (Size, '{"width":1,"c":2}', "/x/c", "additionalProperties"),
        (Size, '{"width":1,"unit":"km"}', "/x/unit", "enum"),
        (Options, "1", "/x", "type"),
        (Options, '{"z":1}', "/x/z", "additionalProperties"),
        (Node, '{"value":1,"children":[{"value":"a"}]}', "/x/children/0/value", "type"),
        (datetime.date, "1", "/x", "type"),
        (datetime.date, '"tomorrow"', "/x", "format"),
        (datetime.date, '"1577836800"', "/x", "format"),
        (datetime.datetime, '"-0"', "/x", "format"),
        (list[datetime.datetime], '["2020-01-01T00:00:00","1.5"]', "/x/1", "format"),
        (Annotated[datetime.date, Gt(datetime.date(2020, 1, 1))], '"2019-01-01"', "/x", "exclusiveMinimum"),
        (datetime.timedelta, '"x"', "/x", "format"),
        (uuid.UUID, "1", "/x", "type"),
        (uuid.UUID, '"x"', "/x", "format"),
        (decimal.Decimal, "[]", "/x", "type"),
        (decimal.Decimal, '"x"', "/x", "format"),
        (bytes, "1", "/x", "type"),
        (Annotated[bytes, MinLen(3)], '"x"', "/x", "minLength"),
        (AnyUrl, '"x"', "/x", "format"),
        (ipaddress.IPv4Address, '"x"', "/x", "format"),
        (IPvAnyAddress, "true", "/x", "type"),
        (IPvAnyNetwork, '"x"', "/x", "format"),
        (PastDate, '"2999-01-01"', "/x", "format"),
        (dict[int, int], '{"01":1}', "/x/01", "propertyNames"),
        (dict[int, int], '{"1":1,"+1":2}', "/x/+1", "propertyNames"),
        (dict[bool, int], '{"true":1,"yes":2}', "/x/yes", "propertyNames"),
        (dict[datetime.date, int], '{"2020-01-01":1,"1577836800":2}', "/x/1577836800", "propertyNames"),
        (dict[Annotated[int, Ge(5)], int], '{"1":1}', "/x/1", "propertyNames"),
        (Annotated[str, Field(pattern="^a+$")], '"b"', "/x", "pattern"),
        (Annotated[int, MultipleOf(3)], "4", "/x", "multipleOf"),
        (Annotated[float, Gt(0)], "0", "/x", "exclusiveMinimum"),
        (Annotated[float, Lt(1)], "1", "/x", "exclusiveMaximum"),
    ],
)
def test_error_has_one_place_and_a_keyword(annotation, text, path, keyword):
    """Whatever pydantic calls it and wherever it puts it, an error has its value's pointer and JSON Schema's word."""
    assert problems_of(annotation, text) == [(path, keyword)]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (datetime.date, '"2020-02-01"', datetime.date(2020, 2, 1)),
        (datetime.timedelta, '"P1D"', datetime.timedelta(days=1)),
        (uuid.UUID, '"12345678-1234-5678-1234-567812345678"', uuid.UUID("12345678-1234-5678-1234-567812345678")),
        (decimal.Decimal, '"1.50"', decimal.Decimal("1.50")),
        (pathlib.Path, '"a/b"', pathlib.Path("a/b")),
        (bytes, '"ab"', b"ab"),
        (IPvAnyAddress, '"::1"', ipaddress.IPv6Address("::1")),
        (tuple[int, ...], "[1,2]", (1, 2)),
        (set[str], '["a"]', {"a"}),
        (dict[int, Colour], '{"1":"r"}', {1: Colour.R}),
        (dict[Colour, int], '{"r":5}', {Colour.R: 5}),
        (dict[bool, int], '{"true":5}', {True: 5}),
        (dict[datetime.date, int], '{"2020-01-02":5}', {datetime.date(2020, 1, 2): 5}),
        (Level, "2", Level.HIGH),
        (Point, '[1,"2020-02-02"]', Point(1, datetime.date(2020, 2, 2))),
        (Point, "[1]", Point(1)),
        (Pet, '{"kind":"dog","born":"2020-01-02"}', Dog(kind="dog", born=datetime.date(2020, 1, 2))),
        (Cat | Dog, '{"kind":"dog","born":"2020-01-02"}', Dog(kind="dog", born=datetime.date(2020, 1, 2))),
        (Size, '{"width":1}', Size(1)),
        (Options, '{"depth":1}', {"depth": 1}),
        (Annotated[float, Ge(0), Le(1)], "1", 1.0),
        (int, "1e23", 10**23),
        (int | None, "null", None),
    ],
)
def test_value_arrives_as_its_annotated_type(annotation, text, value):
    """What JSON cannot say is read from strings and arrays, at any depth, and nothing else is bent."""
    checked = typed(annotation).validate("t", f'{{"x":{text}}}')
    assert checked.arguments == {"x": value} and type(checked.arguments["x"]) is type(value)


SAME = [
    (str, {"type": "string"}, ["5", '"a"', "null", "[]"]),
    (int, {"type": "integer"}, ['"5"', "5", "5.5", "true", "1e400"]),
    (float, {"type": "number"}, ['"5"', "true", "5"]),
    (list[int], {"type": "array", "items": {"type": "integer"}}, ["{}", '["a",1,null]']),
    (Annotated[int, Ge(1), Le(5)], {"type": "integer", "minimum": 1, "maximum": 5}, ["0", "6", "3"]),
    (Annotated[float, Ge(0)], {"type": "number", "minimum": 0}, ["-1", "-0.5"]),
    (
        Annotated[str, MinLen(2), MaxLen(3)],
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"a"', '"abcd"', '"abc"', '""'],
    ),
    (Annotated[str, Field(pattern=r"^\d+$")], {"type": "string", "pattern": r"^\d+$"}, ['"a"', '"5\\n"', '"٣"']),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, ['"c"', "1", '"a"']),
    (
        Size,
        {
            "type": "object",
            "required": ["width"],
            "properties": {"width": {"type": "integer"}, "unit": {"type": "string", "enum": ["cm", "m"]}},
        },
        ["[]", "{}", '{"width":1,"z":2}', '{"z":2,"unit":"km"}'],
    ),
]


@pytest.mark.parametrize(("annotation", "schema", "texts"), SAME)
def test_raw_and_typed_say_the_same_words(annotation, schema, texts):
    """Path, keyword, message and what was expected are the same for a raw and for a typed registration."""
    registry = typed(annotation)
    whole = {"type": "object", "required": ["x"], "properties": {"x": schema}}
    registry.register("raw", whole, any_handler)
    for text in ['{"y":1}', "{}", *(f'{{"x":{text}}}' for text in texts)]:
        raw, other = registry.validate("raw", text), registry.validate("t", text)
        assert raw.errors == other.errors and raw.ok == other.ok, text


def test_order_goes_through_references():
    """At each object the missing names come first, then the properties as declared, then unknown keys as sent."""

    class Inner(BaseModel):
        a: int
        b: int
        c: int

    text = '{"x":{"z":1,"c":"q","y":2,"a":"q"}}'
    assert problems_of(Inner, text[5:-1]) == [
        ("/x/b", "required"), ("/x/a", "type"), ("/x/c", "type"),
        ("/x/z", "additionalProperties"), ("/x/y", "additionalProperties"),
    ]  # fmt: skip


def test_a_failed_union_helps():
    """It says which types, which tags, or what the chosen form lacks."""
    assert typed(int | str).validate("t", '{"x":[]}').errors[0].message == "Input should be a valid integer or valid string"
    tag = typed(Pet).validate("t", '{"x":{"kind":"cow"}}').errors[0]
    assert (tag.message, tag.expected) == ("kind should be 'cat' or 'dog'", ["cat", "dog"])
    assert typed(Pet).validate("t", '{"x":{"kind":"dog"}}').errors[0].message == "dog/born: Field required"


# -- code in the host --


def boom(value=None):
    raise AssertionError("ran in the host")


def wrapping_boom(value, handler):
    boom()


class WithNew:
    def __new__(cls, value):
        return boom()


class Validated(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def check(cls, value):
        return boom(value)


class WholeValidated(BaseModel):
    a: int

    @model_validator(mode="before")
    @classmethod
    def check(cls, value):
        return boom(value)


class PostInit(BaseModel):
    a: int

    def model_post_init(self, context, /):
        boom()


class OwnInit(BaseModel):
    a: int

    def __init__(self, **values):
        boom()


class OwnNew(BaseModel):
    a: int

    def __new__(cls, *args, **values):
        return boom()


class OwnSetattr(BaseModel):
    a: int

    def __setattr__(self, name, value):
        boom()


class OwnReduce(BaseModel):
    a: int

    def __reduce_ex__(self, protocol):
        return boom()


class PrivateFactory(BaseModel):
    a: int
    _b: int = PrivateAttr(default_factory=boom)


class Factory(BaseModel):
    a: int = Field(default_factory=boom)


class SlowPattern(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    a: Annotated[str, Field(pattern="(a+)+$")]


class Missing(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value):
        return boom()


class OwnHash(enum.Enum):
    A = 1

    def __hash__(self):
        return boom()


@dataclass
class OwnPostInit:
    a: int

    def __post_init__(self):
        boom()


@dataclass
class FieldFactory:
    a: int = field(default_factory=boom)


class Custom:
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(boom)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema, handler):
        return {"type": "integer"}


class OwnEquality(BaseModel):
    model_config = ConfigDict(frozen=True)
    a: int

    def __eq__(self, other):
        return boom()


@dataclass(unsafe_hash=True, eq=False)
class OwnDataEquality:
    a: int

    def __eq__(self, other):
        return boom()


class OwnInit2(NamedTuple):
    a: int


class OwnTupleInit(OwnInit2):
    def __init__(self, *values):
        boom()


@dataclass
class OwnDel:
    a: int

    def __del__(self):
        print("ran in the host")


class OwnBound(int):
    def __le__(self, other):
        return boom()

    __gt__ = __ge__ = __lt__ = __le__


class OwnText(str):
    __hash__ = str.__hash__

    def __eq__(self, other):
        return boom()


class OwnChoice(enum.Enum):
    A = OwnText("a")


class OwnCopy(BaseModel):
    a: int = 1

    def __deepcopy__(self, memo=None):
        return boom()


class HoldsOwnCopy(BaseModel):
    a: int
    b: list[Any] = [{"k": OwnCopy()}]


class Encoder:
    @classmethod
    def decode(cls, data):
        return boom(data)

    @classmethod
    def encode(cls, value):
        return boom(value)

    @classmethod
    def get_json_format(cls):
        return "own"


CODE = [
    Annotated[int, AfterValidator(boom)],
    Annotated[int, BeforeValidator(boom)],
    Annotated[int, WrapValidator(wrapping_boom)],
    Annotated[int, PlainValidator(boom)],
    Annotated[int, AfterValidator(functools.partial(wrapping_boom, 1))],
    Annotated[int, AfterValidator(WithNew)],
    Annotated[int, Predicate(boom)],
    list[Annotated[int, AfterValidator(boom)]],
    dict[Annotated[str, AfterValidator(boom)], int],
    int | Annotated[str, AfterValidator(boom)],
    Annotated[
        Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")],
        Discriminator(lambda value: boom()),
    ],
    Annotated[bytes, EncodedBytes(encoder=Encoder)],
    Validated, WholeValidated, PostInit, OwnInit, OwnNew, OwnSetattr, OwnReduce, PrivateFactory, Factory, SlowPattern,
    Missing, OwnHash, OwnPostInit, FieldFactory, Custom,
    set[OwnEquality], set[OwnDataEquality], OwnChoice, OwnCopy, HoldsOwnCopy,
    OwnTupleInit, OwnDel, Annotated[int, Ge(OwnBound(987))], Annotated[list[int], MaxLen(OwnBound(987))], ImportString, FilePath,
]  # fmt: skip


@pytest.mark.parametrize("annotation", CODE, ids=lambda kind: str(kind)[-60:])
def test_code_in_the_host_is_refused(annotation):
    """What would run somebody's code, or look at the host, is refused with the remedy, however it is hidden."""
    with pytest.raises(ValueError, match='validate_in="worker"'):
        typed(annotation)


@pytest.mark.parametrize(
    ("annotation", "good"),
    [
        (Annotated[int, AfterValidator(boom)], "1"),
        (Validated, '{"a":1}'),
        (WholeValidated, '{"a":1}'),
        (PostInit, '{"a":1}'),
        (Factory, "{}"),
        (OwnPostInit, '{"a":1}'),
    ],
)
def test_code_runs_in_the_worker_only(annotation, good):
    """With validate_in="worker" the host answers for its half, and runs nothing of it."""
    registry = typed(annotation, validate_in="worker")
    assert registry.validate("t", f'{{"x":{good}}}').ok
    assert not registry.validate("t", '{"x":[[]]}').ok


class TwoNames(BaseModel):
    a: int = Field(validation_alias=AliasChoices("a1", "a2"))


class NameOnAPath(BaseModel):
    a: int = Field(validation_alias=AliasPath("outer", "a"))


UNFIT = [
    Iterable[int], Callable[[], int], type[int], complex, Json[int], Json, list[Json[Node]], dict[float, int],
    dict[decimal.Decimal, int], dict[Annotated[str, StringConstraints(to_lower=True)], int],
    dict[datetime.datetime, int], dict[Level, int], dict[bytes, int], TwoNames, NameOnAPath,
]  # fmt: skip


@pytest.mark.parametrize("annotation", UNFIT, ids=str)
def test_what_no_json_value_can_be_is_refused(annotation):
    """A parameter that would be checked too late, or that no JSON can be, is no parameter of a tool."""
    with pytest.raises(ValueError, match="parameters"):
        typed(annotation)


@pytest.mark.parametrize(
    "annotation",
    [AnyUrl, ipaddress.IPv6Network, datetime.datetime, Annotated[float, Ge(0)], Any, Node, Point, Size],
    ids=str,
)
def test_declarative_types_are_taken(annotation):
    """What pydantic checks by itself, and what of it is known to be harmless, needs no worker."""
    assert json.dumps(typed(annotation).get("t").schema)


@pytest.mark.parametrize(
    "default",
    [{"type": "json"}, {"type": "union"}, {"type": "str", "pattern": "(?=a)"}, {"type": "date"},
     [{"type": "dict", "keys_schema": 5}], {"type": "function-plain", "function": {"function": "x"}}],
    ids=str,
)  # fmt: skip
def test_a_default_that_looks_like_a_schema_is_a_value(default):
    """A default is taken as it is, whatever its keys are called."""

    def handler(x: Any = default):
        return None

    registry = Registry()
    registry.tool(name="t")(handler)
    assert registry.validate("t", "{}").ok and registry.validate("t", '{"x":1}').arguments == {"x": 1}
    assert registry.get("t").schema["properties"]["x"]["default"] == default


def test_a_text_in_annotated_describes_the_parameter():
    """A plain string stands for a description, beside constraints."""
    schema = typed(Annotated[int, "how many", Ge(1)]).get("t").schema
    assert schema["properties"]["x"] == {"type": "integer", "description": "how many", "minimum": 1}


def test_a_function_of_a_class_is_told_to_be_bound():
    """Registering a method through its class names the remedy."""

    class Service:
        def look(self, n: int) -> int:
            return n

    with pytest.raises(ValueError, match="bound method"):
        Registry().tool(Service.look)
    registry = Registry()
    registry.tool(Service().look)
    assert registry.names() == ["look"]

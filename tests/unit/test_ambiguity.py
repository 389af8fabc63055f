"""No short call may make the host's validation take for ever: exponential schemas are refused (C5, C18)."""

import json
import time
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from dispatcher import Registry
from dispatcher.schema.ambiguity import find_ambiguity

NODE = {"$ref": "#/$defs/node"}


def schema_of(node, **definitions):
    return {"type": "object", "properties": {"x": NODE}, "$defs": {"node": node, **definitions}}


def holding(**properties):
    return {"type": "object", "properties": properties}


LINEAR = [
    {"properties": {f"p{i}": {"anyOf": [holding(a={}), holding(a={})]} for i in range(300)}, "x": {"$ref": "#"}},
    {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": [holding(k={}), holding(k={})]}}},
    {"type": "object"},
    {"type": "object", "properties": {"k": {"$ref": "#"}}},
    schema_of(holding(k=NODE)),
    schema_of(holding(left=NODE, right=NODE)),
    schema_of({"anyOf": [holding(k=NODE), {"type": "null"}]}),
    schema_of({"anyOf": [{"type": "integer"}, {"items": NODE}, {"additionalProperties": NODE}]}),
    schema_of({"anyOf": [holding(a=NODE), holding(b=NODE)]}),
    schema_of({"prefixItems": [NODE], "items": NODE}),
    schema_of({"properties": {"a": NODE}, "additionalProperties": NODE}),
    schema_of({"anyOf": [holding(k=NODE), holding(k={"type": "integer"})]}),
]
CHAIN = {f"d{i}": {"anyOf": [holding(k={"$ref": f"#/$defs/d{i + 1}"})] * 2} for i in range(12)} | {"d12": {}}
EXPONENTIAL = [
    {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": CHAIN},
    {
        "properties": {"x": {"$ref": "#/$defs/%6Eode"}},
        "$defs": {"node": {"anyOf": [holding(k={"$ref": "#/$defs/%6Eode"})] * 2}},
    },
    schema_of({"anyOf": [holding(k=NODE), holding(k=NODE)]}),
    schema_of({"allOf": [holding(k=NODE)], "properties": {"k": NODE}}),
    schema_of({"$ref": "#/$defs/other", "properties": {"k": NODE}}, other=holding(k=NODE)),
    schema_of({"anyOf": [holding(k=NODE), {"additionalProperties": NODE}]}),
    schema_of({"if": holding(k=NODE), "then": holding(k=NODE)}),
    schema_of({"items": NODE, "contains": NODE}),
    schema_of({"prefixItems": [NODE], "contains": NODE}),
    schema_of({"properties": {"a": NODE}, "patternProperties": {"^a": NODE}}),
    schema_of(holding(k={"anyOf": [NODE, NODE]})),
    schema_of({"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}, a=holding(k=NODE), b=holding(k=NODE)),
    {"$id": "http://x/y", "anyOf": [holding(k={"$ref": "y"}), holding(k={"$ref": "#"})]},
    {"$dynamicAnchor": "n", "anyOf": [holding(k={"$dynamicRef": "#n"}), holding(k={"$ref": "#n"})]},
]


@pytest.mark.parametrize("schema", LINEAR, ids=json.dumps)
def test_one_way_back_is_linear(schema):
    """A schema that leads back to itself in one way at each step is taken."""
    assert find_ambiguity(schema) is None


@pytest.mark.parametrize("schema", EXPONENTIAL, ids=json.dumps)
def test_two_ways_back_are_exponential(schema):
    """Two ways at once are found, however they are written."""
    assert find_ambiguity(schema) is not None


def test_a_discriminator_chooses_in_typed_tools_only():
    """pydantic follows one form; a validator of JSON Schema does not know the word."""
    node = {"oneOf": [holding(k=NODE), holding(k=NODE)], "discriminator": {"propertyName": "t"}}
    assert find_ambiguity(schema_of(node), is_typed=True) is None
    assert find_ambiguity(schema_of(node)) is not None


class Left(BaseModel):
    kind: Literal["left"] = "left"
    next: "Left | Right | None" = None


class Right(BaseModel):
    kind: Literal["right"] = "right"
    next: "Left | Right | None" = None


class First(BaseModel):
    kind: Literal["first"]
    next: "Link | None" = None


class Second(BaseModel):
    kind: Literal["second"]
    next: "Link | None" = None


Link = Annotated[First | Second, Field(discriminator="kind")]


def any_handler(**arguments):
    return arguments


def test_registration_refuses_them_with_the_remedy():
    """Each kind of registration names the tool, the schema's pointer and what to do; the worker may do it."""

    def walk(x: Left | Right) -> int:
        return 1

    def answer(n: int) -> Left | Right:
        return Left()

    with pytest.raises(ValueError, match=r"'walk'.*discriminator.*validate_in=\"worker\""):
        Registry().tool(walk)
    registry = Registry()
    registry.tool(validate_in="worker")(walk)
    assert registry.names() == ["walk"]
    with pytest.raises(ValueError, match="return annotation"):
        Registry().tool(answer)
    for dialect in ("core", "2020-12"):
        schema = schema_of({"$ref": "#/$defs/other", "properties": {"k": NODE}}, other=holding(k=NODE))
        with pytest.raises(ValueError, match=r"'t': schema /\$defs.*exponential"):
            Registry().register("t", schema, any_handler, dialect=dialect)


def test_what_is_taken_stays_fast_at_any_depth():
    """The deepest value that the parser lets through is refused at its leaf, at once."""
    registry = Registry()

    @registry.tool(name="typed")
    def typed(x: Link) -> int:
        return 1

    registry.register(
        "full", schema_of({"anyOf": [holding(k=NODE), {"type": "integer"}]}), any_handler, dialect="2020-12"
    )
    linked, plain = '{"x":' + '{"kind":"first","next":' * 62, '{"x":' + '{"k":' * 62
    began = time.monotonic()
    assert not registry.validate("typed", linked + "5" + "}" * 63).ok
    assert not registry.validate("full", plain + "[]" + "}" * 63).ok
    assert time.monotonic() - began < 5


def test_schemas_that_multiply_without_a_step_are_refused_at_once():
    """Chains of references that apply a thousand schemas to one value are refused, and quickly."""
    for count in (12, 20, 40):
        chain = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(count)} | {f"d{count}": {}}
        began = time.monotonic()
        with pytest.raises(ValueError, match="schema"):
            find_ambiguity({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": chain})
        assert time.monotonic() - began < 10

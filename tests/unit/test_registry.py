"""Registration: what is refused, with the pointer and the remedy (C1, C4, C5)."""

from typing import Annotated, Literal

import pytest
from annotated_types import Ge
from pydantic import AfterValidator, BaseModel, Field

from dispatcher import Coerce, ErrorSpec, Limits, Registry, ToolContext, tool


def any_handler(**arguments):
    return arguments


def schema_of(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "array"}, "/type"),
        (schema_of(a={"type": "int"}), "/properties/a/type"),
        (schema_of(a={"enum": []}), "/properties/a/enum"),
        (schema_of(a={"enum": [1, 1.0]}), "/properties/a/enum"),
        (schema_of(a={"type": "string", "enum": [1]}), "/properties/a/enum"),
        (schema_of(a={"minLength": 3, "maxLength": 2}), "/properties/a/minLength"),
        (schema_of(a={"minLength": True}), "/properties/a/minLength"),
        (schema_of(a={"pattern": "(?=x)"}), "/properties/a/pattern"),
        (schema_of(a={"oneOf": []}), "/properties/a/oneOf"),
        (schema_of(**{"a/b": {"format": "email"}}), "/properties/a~1b/format"),
        ({"type": "object", "required": ["x"], "properties": {}}, "/required"),
        (schema_of(a={"$ref": "http://x/y"}), "/properties/a/$ref"),
        (schema_of(a={"$ref": "#/properties/a"}), "/properties/a/$ref"),
    ],
)
def test_schema_mistake_names_tool_and_pointer(schema, pointer):
    """A mistake in a schema raises ValueError with the tool's name and the schema's pointer."""
    with pytest.raises(ValueError, match=r"tool 'a\.tool'") as caught:
        Registry().register("a.tool", schema, any_handler)
    assert f"schema {pointer}:" in str(caught.value)


@pytest.mark.parametrize("name", ["", "1a", "a..b", "a b", "a.", "é", "a" * 129])
def test_bad_name(name):
    """A name outside the grammar is refused."""
    with pytest.raises(ValueError, match="name"):
        Registry().register(name, schema_of(), any_handler)


def test_names_that_providers_would_mix_up_are_refused():
    """Names equal after case-folding and mapping `.` and `-` to `_` cannot stand together; override keeps the place."""
    registry = Registry()
    registry.register("a.b", schema_of(), any_handler)
    registry.register("z", schema_of(), any_handler)
    for name in ("A_b", "a-b", "a.b"):
        with pytest.raises(ValueError, match="taken"):
            registry.register(name, schema_of(), any_handler)
    registry.register("a.b", schema_of(), any_handler, "new", override=True)
    assert registry.names() == ["a.b", "z"] and registry.get("a.b").description == "new"


@pytest.mark.parametrize("option", ["permission", "idempotent", "retry", "network"])
def test_options_that_are_not_built_do_not_exist(option):
    """Nothing is accepted and ignored."""
    with pytest.raises(TypeError):
        Registry().register("t", schema_of(), any_handler, **{option: None})
    with pytest.raises(TypeError):
        Registry().tool(**{option: None})(lambda a: a)


def test_catalogue_is_stricter_never_looser():
    """Codes that a handler cannot report, and a looser next, are refused."""
    for errors in ({"internal_error": "x"}, {"nonsense": "x"}, {"not_found": ErrorSpec("x", next="retry")}):
        with pytest.raises(ValueError, match="errors"):
            Registry().register("t", schema_of(), any_handler, errors=errors)


def test_handler_must_match_its_schema():
    """A handler that cannot take the schema's names, or needs one that may be missing, is refused."""
    for handler in (lambda b: b, lambda: 0, lambda a, c: a):
        with pytest.raises(ValueError, match="handler"):
            Registry().register("t", schema_of(a={"type": "string"}), handler)


@pytest.mark.parametrize(
    ("coerce", "words"),
    [
        ({"/x": "trim"}, "no such property"),
        ({"/a": "round"}, "unknown coercion"),
        ({"/a": "boolean"}, "forbids"),
        ({"a": "trim"}, "Pointer"),
    ],
)
def test_coerce_mistakes(coerce, words):
    """A pointer that leads nowhere, an unknown coercion and one of the wrong type are refused."""
    with pytest.raises(ValueError, match=words):
        Registry().register("t", schema_of(a={"type": "string"}), any_handler, coerce=coerce)


def test_typed_tool_refuses_code_in_the_host():
    """A validator that would run in the host is refused with the remedy; validate_in="worker" accepts it."""

    def shout(value: str) -> str:
        return value.upper()

    def loud(word: Annotated[str, AfterValidator(shout)]) -> str:
        return word

    with pytest.raises(ValueError, match='validate_in="worker"'):
        Registry().tool(loud)
    with pytest.raises(ValueError, match=r"look-around|RE2|regex"):

        @Registry().tool
        def looks(word: Annotated[str, Field(pattern="(?=a)")]) -> str:
            return word


class Address(BaseModel):
    street: str
    number: int = Field(ge=1)


CASES = [
    ('{"n":5,"kind":"a","address":{"street":"x","number":1}}', []),
    ('{"n":"5","kind":"a"}', [("/n", "type")]),
    ('{"n":true,"kind":"a"}', [("/n", "type")]),
    ('{"n":0,"kind":"a"}', [("/n", "minimum")]),
    ('{"kind":"b"}', [("/n", "required"), ("/kind", "enum")]),
    ('{"n":1,"kind":7}', [("/kind", "type")]),
    ('{"n":1,"kind":"a","x":1,"address":{"street":5,"extra":1}}',
     [("/address/number", "required"), ("/address/street", "type"),
      ("/address/extra", "additionalProperties"), ("/x", "additionalProperties")]),
    ('{"n":1.0,"kind":"a"}', []),
    ('{"n":1.5,"kind":"a"}', [("/n", "type")]),
    ('[]', [("", "type")]),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "errors"), CASES)
def test_raw_and_typed_agree(raw, errors):
    """One table of cases gets the same paths, keywords and order from a raw and from a typed registration."""
    registry = Registry()

    @registry.tool(name="typed")
    def typed(n: Annotated[int, Ge(1)], kind: Literal["a", "c"], address: Address | None = None) -> int:
        return n

    address = {
        "type": "object",
        "required": ["street", "number"],
        "properties": {"street": {"type": "string"}, "number": {"type": "integer", "minimum": 1}},
    }
    schema = {
        "type": "object",
        "required": ["n", "kind"],
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "kind": {"type": "string", "enum": ["a", "c"]},
            "address": address,
        },
    }
    registry.register("raw", schema, any_handler)
    registry.register(
        "full",
        {
            **schema,
            "additionalProperties": False,
            "properties": {**schema["properties"], "address": {**address, "additionalProperties": False}},
        },
        any_handler,
        dialect="2020-12",
    )
    for name in ("raw", "typed", "full"):
        checked = registry.validate(name, raw)
        assert [(error.path, error.keyword) for error in checked.errors] == errors, name


def test_booleans_never_satisfy_an_integer_choice():
    """true is not 1, in a Literal of integers or anywhere."""
    registry = Registry()

    @registry.tool
    def choose(level: Literal[0, 1]) -> int:
        return level

    assert registry.validate("choose", '{"level":1}').ok
    assert [e.keyword for e in registry.validate("choose", '{"level":true}').errors] == ["type"]


def test_context_is_hidden_from_the_schema():
    """A ToolContext parameter is no property, and arguments cannot set it."""
    registry = Registry()

    @registry.tool
    def peek(n: int, context: ToolContext) -> int:
        return n

    assert list(registry.get("peek").schema["properties"]) == ["n"]
    assert [e.keyword for e in registry.validate("peek", '{"n":1,"context":{}}').errors] == ["additionalProperties"]


def test_typed_coercion_is_declared_at_any_depth():
    """Annotated coercions reach parameters and list items, and nothing else."""
    registry = Registry()

    @registry.tool
    def add(n: Annotated[int, Coerce.positive_int], rows: list[Annotated[int, Coerce.positive_int]]) -> int:
        return n

    assert registry.validate("add", '{"n":"5","rows":["1",2]}').arguments == {"n": 5, "rows": [1, 2]}


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 10**20, True, "2"])
def test_limits_are_never_absurd(value):
    """A limit of zero, negative, NaN, infinite, absurd or boolean raises ValueError naming the field."""
    with pytest.raises(ValueError, match="wall_s"):
        Limits(wall_s=value)


def test_a_remote_reference_is_refused_without_a_request():
    """The full dialect fetches nothing: a loopback server sees no connection."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        with pytest.raises(ValueError, match="schema"):
            Registry().register(
                "t", {"type": "object", "properties": {"a": {"$ref": url}}}, any_handler, dialect="2020-12"
            )
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_function_is_declared_apart_from_its_registry():
    """`@tool` marks a function and returns it unchanged; `add` registers it with its options, unmarked ones as they are."""

    @tool(name="jobs.get", effect="read", errors={"not_found": "17 exists"})
    def get_job(job_id: int) -> int:
        """Get a job."""
        return job_id

    @tool
    def plain() -> int:
        """Be plain."""
        return 1

    def unmarked() -> int:
        """Be unmarked."""
        return 2

    assert (get_job(3), plain(), unmarked()) == (3, 1, 2)
    registry = Registry()
    registry.add(get_job, plain, unmarked)
    assert registry.names() == ["jobs.get", "plain", "unmarked"]
    assert registry.get("jobs.get").effect == "read" and "not_found" in registry.get("jobs.get").errors
    with pytest.raises(TypeError, match="permission"):
        tool(permission="x")


@pytest.mark.parametrize(
    ("option", "value"),
    [("errors", ["not_found"]), ("coerce", "trim"), ("readable", "/etc"), ("readable", 5), ("limits", {"wall_s": 1})],
)
def test_option_of_the_wrong_kind_is_told_with_the_tool(option, value):
    """An option of the wrong kind raises TypeError that names the tool and the option."""
    with pytest.raises(TypeError, match=rf"'a\.tool'.*{option}"):
        Registry().register("a.tool", schema_of(), any_handler, **{option: value})


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (set[int], "return a list"), (list[frozenset[str]], "return a list"), (bytes, "return a string"),
        (dict[int, str], "key"), (dict[str, list[bytes]], "return a string"), (complex, "JSON"),
    ],
)  # fmt: skip
def test_a_return_type_that_no_result_can_have_is_refused(annotation, words):
    """What is never JSON as a result is told at registration, with what to return instead."""

    def answer():
        return None

    answer.__annotations__["return"] = annotation
    with pytest.raises(ValueError, match=f"'answer'.*{words}"):
        Registry().tool(answer)
    answer.__annotations__["return"] = annotation | None
    Registry().tool(answer)


@pytest.mark.parametrize(("keyword", "near"), [("propertys", "properties"), ("max", "maximum"), ("oneOff", "oneOf")])
def test_a_misspelt_keyword_is_told_with_the_nearest(keyword, near):
    """A word that no dialect has is told from one that the full dialect has, and the nearest is named."""
    with pytest.raises(ValueError, match=f"{keyword}.*did you mean {near!r}"):
        Registry().register("t", {"type": "object", keyword: {}}, any_handler)

"""Rewrite pydantic's core schemas: patterns run in linear time with RE2 (C5), and nothing is bent (C3).

Booleans and numbers are kept apart in Literals and Enums, a named tuple is made of an array alone, and what fails as a
union or as a key of a mapping is one error at its own path (C16).
"""

import contextlib
import inspect
import json
import re
from typing import Any

from pydantic_core import PydanticCustomError, SchemaValidator, ValidationError, core_schema

from dispatcher.schema.patterns import compile_pattern
from dispatcher.schema.typed_errors import KEY, UNION

_OPAQUE = ("serialization", "metadata", "cls", "default", "expected", "members")  # values, or no part of the check
_STOPPABLE = tuple(
    kind
    for kind, maker in (("list", core_schema.list_schema), ("tuple", core_schema.tuple_schema),
                        ("set", core_schema.set_schema), ("frozenset", core_schema.frozenset_schema),
                        ("dict", core_schema.dict_schema))
    if "fail_fast" in inspect.signature(maker).parameters  # a mapping has it since pydantic 2.14
)  # fmt: skip
ANY_KEYS = ("str", "any")
_COUNT = re.compile(r"[+-]?[0-9]*\.?[0-9]*")
CANONICAL = {
    "int": re.compile("-?[1-9][0-9]{0,399}|0"),
    "bool": re.compile("true|false"),
    "date": re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "uuid": re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
}
_EXAMPLES = {"int": "17", "bool": "true", "date": "2020-01-31", "uuid": "12345678-1234-5678-1234-567812345678"}
_CHOICES = ("literal", "enum")
_NAMED_TUPLES = ("named-tuple", "call")  # the latter before pydantic 2.14


def rewrite(node: Any) -> Any:
    """Return a copy of a core schema with patterns and int choices wrapped; ValueError for what RE2 cannot run."""
    if isinstance(node, list):
        return [rewrite(item) for item in node]
    if isinstance(node, tuple):
        return tuple(rewrite(item) for item in node)
    if not isinstance(node, dict):
        return node
    copied = {key: value if key in _OPAQUE else rewrite(value) for key, value in node.items()}
    if copied.get("type") == "dict" and "keys_schema" in copied:
        key = node["keys_schema"]  # always text: no boolean or number can pass for another
        return copied | {"keys_schema": _as_key(key if key["type"] in _CHOICES else copied["keys_schema"])}
    if copied.get("type") == "union":
        return copied | {"custom_error_type": UNION, "custom_error_message": "no form fits"}
    if copied.get("type") == "function-plain" and _name_of(copied).startswith("IPvAny"):
        return copied | {"type": "function-after", "schema": {"type": "str"}}  # else it takes true for 0.0.0.1
    if copied.get("type") == "str" and isinstance(copied.get("pattern"), str):
        return _with_pattern(copied)
    if copied.get("type") == "literal":
        return _with_exact_choices(copied, copied["expected"])
    if copied.get("type") == "enum":
        return _with_exact_choices(copied, [member.value for member in copied["members"]])
    if copied.get("type") in ("date", "datetime"):
        return _from_words(copied)
    if copied.get("type") in _NAMED_TUPLES:
        return _from_array(copied)
    return copied


def build(schema: Any, *, first_only: bool = False) -> SchemaValidator:
    """Return a validator for a rewritten schema, built anew at every depth; `first_only` stops at an error of a list."""
    rewritten = rewrite(schema)
    if first_only:
        _stop_at_first(rewritten)
    try:
        return SchemaValidator(rewritten, _use_prebuilt=False)
    except TypeError:  # an older pydantic-core, which never takes prebuilt parts
        return SchemaValidator(rewritten)


def _stop_at_first(node: Any) -> None:
    """Let containers end at their first error: a hostile value must not make hundreds of thousands of them."""
    if isinstance(node, dict):
        if node.get("type") in _STOPPABLE:
            node["fail_fast"] = True
        for key, child in node.items():
            if key not in _OPAQUE:
                _stop_at_first(child)
    elif isinstance(node, list | tuple):
        for child in node:
            _stop_at_first(child)


def _name_of(node: dict[str, Any]) -> str:
    return str(getattr(node["function"]["function"], "__qualname__", ""))


def _with_pattern(node: dict[str, Any]) -> dict[str, Any]:
    text = node.pop("pattern")
    pattern = compile_pattern(text)

    def check(value: str) -> str:
        if pattern.matches(value):
            return value
        raise PydanticCustomError(
            "string_pattern_mismatch", "String should match pattern '{pattern}'", {"pattern": text}
        )

    return _function("after", check, node)


def _with_exact_choices(node: dict[str, Any], expected: list[Any]) -> dict[str, Any]:
    """Let true and false never stand for 1 and 0, nor the other way round (C15)."""
    numbers = {bool(value) for value in expected if type(value) is bool}, {v for v in expected if _is_number(v)}
    if not any(numbers):
        return node
    words = " or ".join(repr(value) for value in expected)

    def check(value: Any) -> Any:
        if (type(value) is bool and value not in numbers[0]) or (_is_number(value) and value not in numbers[1]):
            raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": words})
        return value

    return _function("before", check, node)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and type(value) is not bool


def _from_array(node: dict[str, Any]) -> dict[str, Any]:
    """Let a named tuple be made of an array alone, as its JSON Schema says."""
    is_older = node["type"] == "call"
    make = node["function"] if is_older else node["cls"]
    fields = node["arguments_schema"]["arguments_schema"] if is_older else node["fields"]
    items = {"type": "tuple", "items_schema": [field["schema"] for field in fields]}
    return _named(node) | _function("after", lambda values: make(*values), items)


def _from_words(node: dict[str, Any]) -> dict[str, Any]:
    """Read a date as its JSON Schema's format says, never from a count of seconds."""
    validator = SchemaValidator({key: value for key, value in node.items() if key != "ref"})

    def read(value: Any) -> Any:
        if type(value) is str and _COUNT.fullmatch(value.strip()):
            words = f"Input should be a valid {node['type']}, not a count of seconds"
            raise PydanticCustomError(f"{node['type']}_parsing", "{said}", {"said": words})
        return validator.validate_json(json.dumps(value), strict=True)

    return _named(node) | _function("plain", read)


def _as_key(node: dict[str, Any]) -> dict[str, Any]:
    """Fail as one error about the key; text keeps its own words, others are read from text as pydantic reads keys."""
    if node["type"] in ANY_KEYS and set(node) <= {"type", "metadata"}:
        return node
    if node["type"] in CANONICAL:
        return _read_canonically(node, CANONICAL[node["type"]])
    if node["type"] != "str" and node.get("schema", {}).get("type") != "str":
        words = "Key is not one of those allowed"
        return {"type": "custom-error", "schema": node, "custom_error_type": KEY, "custom_error_message": words}

    def check(value: Any, inner: Any) -> Any:
        try:
            return inner(value)
        except ValidationError as error:
            raise PydanticCustomError(KEY, "{said}", {"said": error.errors(include_url=False)[0]["msg"]}) from None

    return _function("wrap", check, node)


def _read_canonically(node: dict[str, Any], pattern: "re.Pattern[str]") -> dict[str, Any]:
    """Read a key of the one form that it has as text, so that no two keys are one."""
    validator = SchemaValidator(node)
    message = f"Key should be a valid {node['type']}, as {_EXAMPLES[node['type']]}"

    def read(text: Any) -> Any:
        if pattern.fullmatch(text):
            with contextlib.suppress(ValidationError):
                quoted = json.dumps(text) if node["type"] in ("uuid", "date") else text
                return validator.validate_json(quoted, strict=True)
        raise PydanticCustomError(KEY, "{said}", {"said": message})

    return _function("plain", read)


def _function(mode: str, function: Any, schema: Any = None) -> dict[str, Any]:
    """Return a node that runs a function of ours. Inside "before" and "wrap" nothing is read from text any more."""
    node = {"type": f"function-{mode}", "function": {"type": "no-info", "function": function}}
    return node if schema is None else node | {"schema": schema}


def _named(node: dict[str, Any]) -> dict[str, Any]:
    """Return what others know a node by."""
    return {key: node[key] for key in ("ref", "metadata") if key in node}

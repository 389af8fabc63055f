"""Rewrite pydantic's core schemas: patterns run in linear time with RE2 (C5), and nothing is bent (C3).

Booleans and numbers are kept apart in Literals and Enums, and a named tuple is made of an array alone.
"""

from typing import Any

from pydantic_core import PydanticCustomError, SchemaValidator

from dispatcher.schema.patterns import compile_pattern


def rewrite(node: Any) -> Any:
    """Return a copy of a core schema with patterns and int choices wrapped; ValueError for what RE2 cannot run."""
    if isinstance(node, list):
        return [rewrite(item) for item in node]
    if isinstance(node, tuple):
        return tuple(rewrite(item) for item in node)
    if not isinstance(node, dict):
        return node
    copied = {
        key: value if key in ("serialization", "metadata", "cls") else rewrite(value) for key, value in node.items()
    }
    if copied.get("type") == "str" and isinstance(copied.get("pattern"), str):
        return _with_pattern(copied)
    if copied.get("type") == "literal":
        return _with_exact_choices(copied, copied["expected"])
    if copied.get("type") == "enum":
        return _with_exact_choices(copied, [member.value for member in copied["members"]])
    if copied.get("type") == "call":
        return _from_array(copied)
    return copied


def build(core_schema: Any) -> SchemaValidator:
    """Return a validator for a rewritten schema, built anew at every depth."""
    rewritten = rewrite(core_schema)
    try:
        return SchemaValidator(rewritten, _use_prebuilt=False)
    except TypeError:  # an older pydantic-core, which never takes prebuilt parts
        return SchemaValidator(rewritten)


def _with_pattern(node: dict[str, Any]) -> dict[str, Any]:
    text = node.pop("pattern")
    pattern = compile_pattern(text)

    def check(value: str) -> str:
        if pattern.matches(value):
            return value
        raise PydanticCustomError(
            "string_pattern_mismatch", "String should match pattern '{pattern}'", {"pattern": text}
        )

    return {"type": "function-after", "function": {"type": "no-info", "function": check}, "schema": node}


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

    return _before(node, check)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and type(value) is not bool


def _from_array(node: dict[str, Any]) -> dict[str, Any]:
    def check(value: Any) -> Any:
        if type(value) is not list:
            raise PydanticCustomError("tuple_type", "Input should be a valid array")
        return value

    return _before(node, check)


def _before(node: dict[str, Any], check: Any) -> dict[str, Any]:
    return {"type": "function-before", "function": {"type": "no-info", "function": check}, "schema": node}

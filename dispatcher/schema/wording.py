"""The words of a problem, in pydantic's style, and what was expected, as JSON: one table for every validator."""

from collections.abc import Sequence
from typing import Any

from dispatcher.faults import MISSING, Problem

TYPE_WORDS = {
    "string": "valid string",
    "integer": "valid integer",
    "number": "valid number",
    "boolean": "valid boolean",
    "array": "valid list",
    "object": "valid dictionary",
    "null": "None",
}
SHOWN_NAMES = 16
EVERY_ERROR_CHARACTERS = 8_192  # in a longer text a list is read to its first error: else they could be half a million
MOST_PROBLEMS = 1_000  # of one call: past these nobody reads on, and each costs the host time and memory


def wrong_type(path: str, types: Sequence[str], got: Any) -> Problem:
    """Say that the value's type is not allowed."""
    words = " or ".join(TYPE_WORDS.get(name, name) for name in types)
    article = "" if words.startswith("None") else "a "
    expected: Any = types[0] if len(types) == 1 else list(types)
    return Problem(path=path, keyword="type", message=f"Input should be {article}{words}", expected=expected, got=got)


def not_in_enum(path: str, values: Sequence[Any], got: Any, keyword: str = "enum") -> Problem:
    """Say that the value is none of those listed; `keyword` is "type" when it is not even of a type of theirs."""
    shown = [repr(value) for value in values[:SHOWN_NAMES]]
    words = shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" or {shown[-1]}"
    more = f" (and {len(values) - SHOWN_NAMES} more)" if len(values) > SHOWN_NAMES else ""
    return Problem(
        path=path, keyword=keyword, message=f"Input should be {words}{more}", expected=list(values[:64]), got=got
    )


def missing(path: str) -> Problem:
    """Say that a required property is not there."""
    return Problem(path=path, keyword="required", message="Field required", got=MISSING)


def unknown(path: str, known: Sequence[str], got: Any, keyword: str = "additionalProperties") -> Problem:
    """Say that a property is not one of the schema's."""
    message = "Extra inputs are not permitted"
    return Problem(path=path, keyword=keyword, message=message, expected=list(known[:SHOWN_NAMES]), got=got)


def union(path: str, types: Sequence[str], got: Any, keyword: str = "anyOf") -> Problem:
    """Say that a value fits no form, or more than one where only one may fit; `types` are those of the forms."""
    known = list(dict.fromkeys(types))
    if known and type_name(got) not in known:
        message = wrong_type(path, known, got).message
    else:
        message = f"Input should match {'exactly ' if keyword == 'oneOf' else ''}one of the allowed forms"
    return Problem(path=path, keyword=keyword, message=message, expected=known or None, got=got)


_BOUNDS = {
    "minimum": "Input should be greater than or equal to {}",
    "maximum": "Input should be less than or equal to {}",
    "exclusiveMinimum": "Input should be greater than {}",
    "exclusiveMaximum": "Input should be less than {}",
    "multipleOf": "Input should be a multiple of {}",
    "minLength": "String should have at least {} character{s}",
    "maxLength": "String should have at most {} character{s}",
    "minItems": "List should have at least {} item{s}",
    "maxItems": "List should have at most {} item{s}",
    "minProperties": "Dictionary should have at least {} item{s}",
    "maxProperties": "Dictionary should have at most {} item{s}",
    "pattern": "String should match pattern '{}'",
}


def out_of_bounds(path: str, keyword: str, bound: Any, got: Any) -> Problem:
    """Say that a bound, a length or a pattern is not kept."""
    if isinstance(bound, float) and abs(bound) < 2**53 and bound.is_integer():  # pydantic has 0.0 for a float's bound of 0
        bound = int(bound)
    template = _BOUNDS.get(keyword, f"Input does not satisfy {keyword}")
    message = template.format(bound, s="" if bound == 1 else "s")
    return Problem(path=path, keyword=keyword, message=message, expected=bound, got=got)


def type_name(value: Any) -> str:
    """Return the JSON type of a value, as JSON Schema names it."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "object")

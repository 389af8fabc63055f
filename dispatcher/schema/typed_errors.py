"""Rewrite pydantic's errors to the one shape: pointer, keyword, words and order of C14, one error a node (C16). Pure.

Unions and keys come as one error each, named here, from the rewritten core schema (`core_schema.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dispatcher.faults import MISSING, Problem
from dispatcher.schema import walk, wording
from dispatcher.schema.order import in_order
from dispatcher.schema.pointer import join

UNION = "union"
KEY = "property_name"

_TYPES = {
    **dict.fromkeys(("int_type", "int_from_float", "int_parsing", "int_parsing_size"), "integer"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "boolean"),
    **dict.fromkeys(("string_type", "string_unicode", "string_sub_type"), "string"),
    **dict.fromkeys(
        ("list_type", "tuple_type", "set_type", "frozen_set_type", "deque_type", "iterable_type", "arguments_type",
         "named_tuple_type"), "array"),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type", "dataclass_type", "mapping_type", "frozen_dict_type",
         "ordered_dict_type", "counter_type"), "object"),
    "none_required": "null",
}  # fmt: skip
# What pydantic reads from text: its word, and the JSON types that it may come as.
_READ = {
    "date_type": ("date", ["string"]),
    "time_type": ("time", ["string"]),
    "datetime_type": ("datetime", ["string"]),
    "time_delta_type": ("duration", ["string"]),
    "bytes_type": ("string", ["string"]),
    "url_type": ("URL", ["string"]),
    "uuid_type": ("UUID", ["string"]),
    "decimal_type": ("decimal", ["number", "string"]),
    "fraction_type": ("fraction", ["number", "string"]),
}
_BOUNDS = {
    "greater_than_equal": ("minimum", "ge"),
    "less_than_equal": ("maximum", "le"),
    "greater_than": ("exclusiveMinimum", "gt"),
    "less_than": ("exclusiveMaximum", "lt"),
    "multiple_of": ("multipleOf", "multiple_of"),
    "string_too_short": ("minLength", "min_length"),
    "string_too_long": ("maxLength", "max_length"),
    "bytes_too_short": ("minLength", "min_length"),
    "bytes_too_long": ("maxLength", "max_length"),
    "url_too_long": ("maxLength", "max_length"),
    "string_pattern_mismatch": ("pattern", "pattern"),
    "too_short": ("minItems", "min_length"),
    "too_long": ("maxItems", "max_length"),
}
_TAGS = ("union_tag_invalid", "union_tag_not_found")
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def rewrite_errors(errors: Sequence[Any], data: Any, schema: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return the problems for pydantic's error list; `data` is what was validated, `schema` its JSON Schema."""
    problems: dict[str, Problem] = {}
    steps = walk.Walk(schema)
    for error in errors:
        problem = _problem(error, data, steps)
        problems.setdefault(problem.path, problem)
    return in_order(tuple(problems.values()), schema, data)


def _problem(error: Any, data: Any, steps: walk.Walk) -> Problem:
    place = _follow(error, data, steps)
    path, kind, got = place.path, error["type"], error.get("input", MISSING)
    if place.inside:
        return _inner(place, error)
    if kind == "missing":
        return _missing(place)
    if kind == KEY:
        return Problem(path=path, keyword="propertyNames", message=_words(error), got=got)
    if kind in _UNKNOWN:
        return wording.unknown(path, walk.properties_of(place.parent_forms), got)
    return _wrong_value(error, path, got, place.forms)


def _wrong_value(error: Any, path: str, got: Any, forms: walk.Forms) -> Problem:
    kind, context = error["type"], error.get("ctx") or {}
    if kind in _TYPES and not _is_of_tags(got, forms):
        return wording.wrong_type(path, [_TYPES[kind]], got)
    if kind in _READ:
        word, types = _READ[kind]
        expected: Any = types[0] if len(types) == 1 else types
        message = f"Input should be a valid {word}"
        return Problem(path=path, keyword="type", message=message, expected=expected, got=got)
    if kind in _BOUNDS:
        keyword, name = _BOUNDS[kind]
        if isinstance(got, dict):
            keyword = keyword.replace("Items", "Properties")
        return wording.out_of_bounds(path, keyword, _plain(context.get(name)), got)
    if kind in ("literal_error", "enum"):
        return _choice(error, path, got, walk.choices_of(forms))
    if kind == UNION or kind in _TYPES:
        types = [str(form["type"]) for form in forms if isinstance(form.get("type"), str)]
        return wording.union(path, types, got)
    if kind in _TAGS:
        return _tag(error, path, got, forms)
    return _other(error, path, got, forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Hold where an error is: `inside` are the steps that lead on, into a union's form."""

    path: str
    value: Any
    parent: Any
    forms: walk.Forms
    parent_forms: walk.Forms
    inside: tuple[Any, ...] = ()


def _is_of_tags(got: Any, forms: walk.Forms) -> bool:
    return not isinstance(got, dict) and walk.first_of(forms, "discriminator") is not None


def _follow(error: Any, data: Any, steps: walk.Walk) -> _Place:
    loc = error["loc"][:-1] if error["type"] == KEY else error["loc"]
    path, here, parent, forms, parent_forms = "", data, data, steps.top, steps.top
    inside: tuple[Any, ...] = ()
    for index, step in enumerate(loc):
        is_last = index == len(loc) - 1
        if _is_tag(step, here, forms) or not (_holds(here, step) or (is_last and isinstance(here, dict | list))):
            inside = tuple(loc[index:])
            break
        parent, here = here, here[step] if _holds(here, step) else MISSING
        path, parent_forms, forms = join(path, step), forms, steps.child(forms, str(step))
    return _Place(path=path, value=here, parent=parent, forms=forms, parent_forms=parent_forms, inside=inside)


def _is_tag(step: Any, here: Any, forms: walk.Forms) -> bool:
    """Ask whether a step is no property but the form that a discriminator chose."""
    named = (walk.first_of(forms, "discriminator") or {}).get("propertyName")
    return named is not None and isinstance(here, dict) and str(here.get(named)) == str(step)


def _inner(place: _Place, error: Any) -> Problem:
    where = "/".join(str(step) for step in place.inside)
    return Problem(path=place.path, keyword="anyOf", message=f"{where}: {_words(error)}", got=place.value)


def _holds(here: Any, step: Any) -> bool:
    if isinstance(here, list):
        return isinstance(step, int) and 0 <= step < len(here)
    return isinstance(here, dict) and step in here


def _missing(place: _Place) -> Problem:
    if not isinstance(place.parent, list):
        return wording.missing(place.path)
    least = walk.first_of(place.parent_forms, "minItems")  # of a tuple
    path = place.path.rpartition("/")[0]
    return wording.out_of_bounds(path, "minItems", least or len(place.parent) + 1, place.parent)


def _choice(error: Any, path: str, got: Any, allowed: list[Any]) -> Problem:
    if not allowed:
        return Problem(path=path, keyword="enum", message=_words(error), got=got)
    types = {wording.type_name(value) for value in allowed}
    if "number" in types:
        types.add("integer")
    return wording.not_in_enum(path, allowed, got, "enum" if wording.type_name(got) in types else "type")


def _tag(error: Any, path: str, got: Any, forms: walk.Forms) -> Problem:
    """Say the values that a discriminator may have."""
    about = walk.first_of(forms, "discriminator") or {}
    name, tags = about.get("propertyName"), list(about.get("mapping", ()))
    if name is None:
        return Problem(path=path, keyword="anyOf", message=_words(error), got=got)
    message = wording.not_in_enum(path, tags, got).message.replace("Input", str(name), 1)
    return Problem(path=path, keyword="anyOf", message=message, expected=tags, got=got)


def _other(error: Any, path: str, got: Any, forms: walk.Forms) -> Problem:
    """Name what JSON Schema has no keyword for: `format` for a text that cannot be read, else `validator`."""
    form = walk.first_of(forms, "format")
    is_unread = isinstance(got, str) and error["type"] not in ("value_error", "assertion_error")
    keyword = "format" if form is not None or is_unread else "validator"
    return Problem(path=path, keyword=keyword, message=_words(error), expected=form, got=got)


def _words(error: Any) -> str:
    return str(error["msg"])


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)

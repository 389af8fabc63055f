"""Rewrite jsonschema-rs's errors to the one shape (C16): each error's own subschema says what was expected. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from dispatcher.faults import Problem
from dispatcher.schema import walk, wording
from dispatcher.schema.order import in_order
from dispatcher.schema.pointer import join

_WORDS = {
    "uniqueItems": "List should have unique items",
    "contains": "List should contain a matching item",
    "minContains": "List should contain at least {} matching items",
    "maxContains": "List should contain at most {} matching items",
    "not": "Input should not be what it is: the schema excludes it",
    "unevaluatedItems": "Extra items are not permitted",
    "items": "Extra items are not permitted",
}
_UNKNOWN = ("additionalProperties", "unevaluatedProperties")
_UNIONS = ("anyOf", "oneOf")


def rewrite_errors(errors: Iterable[Any], schema: Mapping[str, Any], value: Any) -> tuple[Problem, ...]:
    """Return the problems for the library's errors, at most one a node, in the core dialect's order."""
    found: dict[str, Problem] = {}
    for error in islice(errors, wording.MOST_PROBLEMS):
        path = ""
        for part in error.instance_path:
            path = join(path, part)
        for problem in _problems(error, path, schema):
            found.setdefault(problem.path, problem)
    return in_order(tuple(found.values()), schema, value)


def _problems(error: Any, path: str, schema: Mapping[str, Any]) -> Iterator[Problem]:
    kind, got = error.kind, error.instance
    node, keyword = _place(error, schema)
    if kind.name == "required":
        needed = wording.missing(join(path, kind.property))
        yield Problem(path=needed.path, keyword=keyword, message=needed.message)
    elif keyword in _UNKNOWN and hasattr(kind, "unexpected"):
        known = walk.properties_of(walk.forms_of(node, schema))
        for name in kind.unexpected:
            value = got.get(name) if isinstance(got, dict) else got
            yield wording.unknown(join(path, name), known, value, keyword)
    elif kind.name == "propertyNames":
        inner = next(_problems(kind.error, path, schema), None)
        words = inner.message if inner is not None else "Key is not one of those allowed"
        yield Problem(path=join(path, kind.error.instance), keyword="propertyNames", message=words, got=kind.error.instance)
    elif kind.name == "falseSchema":
        yield _never(path, keyword, got)
    else:
        yield _wrong_value(path, keyword, node, got)


def _place(error: Any, schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the subschema that an error comes from, and the keyword in it that was not kept."""
    steps = list(error.schema_path)
    here: Any = schema
    node: Mapping[str, Any] = {}
    keyword = error.kind.name
    for step in steps:
        if isinstance(here, Mapping):
            node, keyword = here, str(step)
        try:
            here = here[step]
        except (KeyError, IndexError, TypeError):
            break
    return node, keyword


def _never(path: str, keyword: str, got: Any) -> Problem:
    """Say that nothing may be where the schema is `false`."""
    if keyword in ("items", "prefixItems"):
        return Problem(path=path, keyword="items", message=_WORDS["items"], got=got)
    return wording.unknown(path, [], got)


def _wrong_value(path: str, keyword: str, node: Mapping[str, Any], got: Any) -> Problem:
    bound = node.get(keyword)
    if keyword == "type":
        if node.get("enum"):
            return wording.not_in_enum(path, node["enum"], got, "type")
        return wording.wrong_type(path, bound if isinstance(bound, list) else [str(bound)], got)
    if keyword == "enum" and isinstance(bound, list):
        return wording.not_in_enum(path, bound, got)
    if keyword == "const":
        return wording.not_in_enum(path, [bound], got, "const")
    if keyword in _UNIONS and isinstance(bound, list):
        return wording.union(path, [str(form["type"]) for form in bound if _has_type(form)], got, keyword)
    if keyword in _WORDS:
        expected = bound if isinstance(bound, int) else None
        return Problem(path=path, keyword=keyword, message=_WORDS[keyword].format(bound), expected=expected, got=got)
    return wording.out_of_bounds(path, keyword, bound if isinstance(bound, str | int | float) else None, got)


def _has_type(form: Any) -> bool:
    return isinstance(form, Mapping) and isinstance(form.get("type"), str)

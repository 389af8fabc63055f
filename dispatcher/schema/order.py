"""Put problems in C14's order by the schema's own order of names. Pure."""

from collections.abc import Mapping
from typing import Any

from dispatcher.faults import Problem
from dispatcher.schema import walk
from dispatcher.schema.pointer import index_in, split

_UNKNOWN = ("additionalProperties", "unevaluatedProperties")


def in_order(problems: tuple[Problem, ...], schema: Mapping[str, Any], value: Any) -> tuple[Problem, ...]:
    """Sort: at each object the required names in schema order, properties in schema order, unknown keys as sent."""
    if len(problems) < 2:
        return problems
    return tuple(sorted(problems, key=lambda problem: _rank(problem, schema, value)))


def _rank(problem: Problem, schema: Mapping[str, Any], value: Any) -> list[tuple[int, int]]:
    ranks: list[tuple[int, int]] = []
    forms = walk.forms_of(schema, schema)
    here: Any = value
    parts = split(problem.path)
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        ranks.append(_step(forms, here, part, problem.keyword if is_last else ""))
        forms = walk.children_of(forms, part, schema)
        here = _value(here, part)
    return ranks


def _step(forms: walk.Forms, here: Any, part: str, keyword: str) -> tuple[int, int]:
    if isinstance(here, list):
        return (1, index_in(part, len(here)) or 0)
    if keyword in ("required", "dependentRequired"):
        return (0, _index(walk.required_of(forms), part))
    properties = walk.properties_of(forms)
    if part in properties and keyword not in _UNKNOWN:
        return (1, properties.index(part))
    return (2, _index(list(here) if isinstance(here, dict) else [], part))


def _index(names: list[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _value(here: Any, part: str) -> Any:
    if isinstance(here, dict):
        return here.get(part)
    index = index_in(part, len(here)) if isinstance(here, list) else None
    return None if index is None else here[index]

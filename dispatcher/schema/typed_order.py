"""Put problems in C14's order by the schema's own order of names. Pure."""

from collections.abc import Mapping
from typing import Any

from dispatcher.faults import Problem
from dispatcher.schema.pointer import split


def in_order(problems: tuple[Problem, ...], schema: Mapping[str, Any], value: Any) -> tuple[Problem, ...]:
    """Sort: at each object the required names in schema order, properties in schema order, unknown keys as sent."""
    return tuple(sorted(problems, key=lambda problem: _rank(problem, schema, value)))


def _rank(problem: Problem, schema: Mapping[str, Any], value: Any) -> list[tuple[int, int]]:
    ranks: list[tuple[int, int]] = []
    node: Any = schema
    here: Any = value
    parts = split(problem.path)
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        ranks.append(_step(node, here, part, problem.keyword if is_last else ""))
        node = _child(node, part)
        here = _value(here, part)
    return ranks


def _step(node: Any, here: Any, part: str, keyword: str) -> tuple[int, int]:
    if isinstance(here, list):
        return (1, int(part) if part.isdigit() else 0)
    properties = list(node.get("properties", {})) if isinstance(node, dict) else []
    required = node.get("required", []) if isinstance(node, dict) else []
    if keyword == "required":
        return (0, required.index(part) if part in required else len(required))
    if part in properties and keyword != "additionalProperties":
        return (1, properties.index(part))
    keys = list(here) if isinstance(here, dict) else []
    return (2, keys.index(part) if part in keys else len(keys))


def _child(node: Any, part: str) -> Any:
    if not isinstance(node, dict):
        return {}
    properties = node.get("properties", {})
    return properties.get(part, node.get("items", {}))


def _value(here: Any, part: str) -> Any:
    if isinstance(here, dict):
        return here.get(part)
    if isinstance(here, list) and part.isdigit() and int(part) < len(here):
        return here[int(part)]
    return None

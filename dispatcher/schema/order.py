"""Put problems in C14's order by the schema's own order of names. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from dispatcher.faults import Problem
from dispatcher.schema import walk
from dispatcher.schema.pointer import index_in, split

_UNKNOWN = ("additionalProperties", "unevaluatedProperties")
_NEEDED = ("required", "dependentRequired")
_NOBODY: dict[str, int] = {}


def in_order(problems: tuple[Problem, ...], schema: Mapping[str, Any], value: Any) -> tuple[Problem, ...]:
    """Sort: at each object the required names in schema order, properties in schema order, unknown keys as sent."""
    if len(problems) < 2:
        return problems
    order = _Order(schema)
    return tuple(sorted(problems, key=lambda problem: order.rank(problem, value)))


class _Order:
    """Rank problems of one value; what it has looked up once it knows: thousands may be in one object."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._walk = walk.Walk(schema)
        self._positions: dict[tuple[str, int], dict[str, int]] = {}

    def rank(self, problem: Problem, value: Any) -> list[tuple[int, int]]:
        """Return for each step to the problem its group and its place there."""
        ranks: list[tuple[int, int]] = []
        forms, here = self._walk.top, value
        parts = split(problem.path)
        for index, part in enumerate(parts):
            ranks.append(self._step(forms, here, part, problem.keyword if index == len(parts) - 1 else ""))
            forms, here = self._walk.child(forms, part), _value(here, part)
        return ranks

    def _step(self, forms: walk.Forms, here: Any, part: str, keyword: str) -> tuple[int, int]:
        if isinstance(here, list):
            return (1, index_in(part, len(here)) or 0)
        if keyword in _NEEDED:
            return (0, self._place("required", forms, walk.required_of, part))
        properties = self._known("properties", forms, walk.properties_of)
        if part in properties and keyword not in _UNKNOWN:
            return (1, properties[part])
        return (2, self._place("keys", here, list, part) if isinstance(here, dict) else 0)

    def _place(self, kind: str, owner: Any, names_of: Any, part: str) -> int:
        names = self._known(kind, owner, names_of)
        return names.get(part, len(names))

    def _known(self, kind: str, owner: Any, names_of: Any) -> dict[str, int]:
        key = (kind, id(owner))  # schema and value outlive us: no two of them have one id
        if key not in self._positions:
            self._positions[key] = _numbered(names_of(owner))
        return self._positions[key]


def _numbered(names: Iterable[Any]) -> dict[str, int]:
    return {str(name): index for index, name in enumerate(names)}


def _value(here: Any, part: str) -> Any:
    if isinstance(here, dict):
        return here.get(part)
    index = index_in(part, len(here)) if isinstance(here, list) else None
    return None if index is None else here[index]

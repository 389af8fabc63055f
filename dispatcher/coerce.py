"""Coercion: narrow, declared, once, between parsing and validation (C11 to C13). Standard library only."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dispatcher.schema.pointer import split

_POSITIVE = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_LARGEST = 2**63 - 1


class Coercion(str):
    """Name one coercion; usable as an `Annotated` mark and in a `coerce=` mapping."""

    __slots__ = ()


class Coerce:
    """List every coercion there is."""

    positive_int = Coercion("positive_int")
    trim = Coercion("trim")
    boolean = Coercion("boolean")


def _positive_int(value: Any) -> Any:
    if type(value) is str and _POSITIVE.fullmatch(value) and int(value) <= _LARGEST:
        return int(value)
    return value


def _trim(value: Any) -> Any:
    return value.strip() if type(value) is str else value


def _boolean(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if type(value) is str else value


RULES: dict[str, tuple[Callable[[Any], Any], str]] = {  # name: function, the JSON type it yields
    "positive_int": (_positive_int, "integer"),
    "trim": (_trim, "string"),
    "boolean": (_boolean, "boolean"),
}
Plan = tuple[tuple[tuple[str, ...], tuple[Callable[[Any], Any], ...]], ...]


def compile_coercions(coerce: Mapping[str, str | Sequence[str]] | None, schema: Mapping[str, Any], tool: str) -> Plan:
    """Return the plan for `coerce`, pointer → name or names; ValueError naming tool, pointer and remedy (C5)."""
    plan = []
    if coerce is not None and not isinstance(coerce, Mapping):
        raise TypeError(f"tool {tool!r}: coerce must map JSON Pointers to coercions, not be {type(coerce).__name__}")
    for pointer, names in (coerce or {}).items():
        listed = (names,) if isinstance(names, str) else tuple(names)
        try:
            segments = tuple(split(pointer))
        except ValueError as error:
            raise ValueError(f"tool {tool!r}: coerce {pointer[:80]!r}: {error}") from None
        _check(pointer, listed, _types_at(schema, segments), tool)
        plan.append((segments, tuple(RULES[name][0] for name in listed)))
    return tuple(plan)


def apply(plan: Plan, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the plan applied; copies what it changes, never mutates."""
    for segments, functions in plan:
        arguments = _apply_at(arguments, segments, functions)
    return arguments


def _apply_at(value: Any, segments: tuple[str, ...], functions: tuple[Callable[[Any], Any], ...]) -> Any:
    if not segments:
        for function in functions:
            value = function(value)
        return value
    head, rest = segments[0], segments[1:]
    if type(value) is dict and head in value:
        return {**value, head: _apply_at(value[head], rest, functions)}
    if type(value) is list and head == "*":
        return [_apply_at(item, rest, functions) for item in value]
    return value


def _check(pointer: str, names: tuple[str, ...], types: set[str] | None, tool: str) -> None:
    where = f"tool {tool!r}: coerce {pointer!r}"
    for name in names:
        if name not in RULES:
            raise ValueError(f"{where}: unknown coercion {str(name)[:60]!r}; there are {', '.join(RULES)}")
    if types is None:
        raise ValueError(f"{where}: the schema has no such property; correct the pointer")
    yields = RULES[names[-1]][1] if names else ""
    wanted = {yields, "number"} if yields == "integer" else {yields}
    if types and not types & wanted:
        raise ValueError(
            f"{where}: {names[-1]!r} yields {yields}, which the property's type ({', '.join(sorted(types))}) forbids"
        )


def _types_at(schema: Mapping[str, Any], segments: tuple[str, ...]) -> set[str] | None:
    """Return the types that the schema allows at a pointer (empty: any), `None` if it leads nowhere."""
    found = [schema]
    for segment in segments:
        found = [child for node in found for child in _children(node, segment, schema)]
        if not found:
            return None
    types: set[str] = set()
    for branch in (branch for node in found for branch in _branches(node, schema)):
        listed = branch.get("type", [])
        types |= {listed} if isinstance(listed, str) else set(listed)
    return types


def _children(node: Mapping[str, Any], segment: str, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = []
    for branch in _branches(node, root):
        if segment in branch.get("properties", {}):
            found.append(branch["properties"][segment])
        if segment == "*" and isinstance(branch.get("items"), dict):
            found.append(branch["items"])
    return found


def _branches(node: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> list[Mapping[str, Any]]:
    """Return the node and what its local $ref, anyOf and allOf lead to."""
    found = [node]
    if depth > 16:
        return found
    for key in ("anyOf", "oneOf", "allOf"):
        for child in node.get(key, []):
            found += _branches(child, root, depth + 1)
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target: Any = root
        for part in split(reference[1:]):
            target = target.get(part, {}) if isinstance(target, dict) else {}
        if isinstance(target, dict):
            found += _branches(target, root, depth + 1)
    return found

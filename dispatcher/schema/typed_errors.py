"""Rewrite pydantic's errors to the one shape: pointer, keyword, order of C14, one error a node (C16). Pure."""

from collections.abc import Sequence
from typing import Any

from dispatcher.faults import MISSING, Problem
from dispatcher.schema import wording
from dispatcher.schema.pointer import join

KEYWORDS = {
    "missing": ("required", ""),
    "extra_forbidden": ("additionalProperties", ""),
    "greater_than_equal": ("minimum", "ge"),
    "less_than_equal": ("maximum", "le"),
    "greater_than": ("exclusiveMinimum", "gt"),
    "less_than": ("exclusiveMaximum", "lt"),
    "multiple_of": ("multipleOf", "multiple_of"),
    "string_too_short": ("minLength", "min_length"),
    "string_too_long": ("maxLength", "max_length"),
    "string_pattern_mismatch": ("pattern", "pattern"),
    "too_short": ("minItems", "min_length"),
    "too_long": ("maxItems", "max_length"),
}
_TEXT_FORMATS = ("_parsing", "_from_date_parsing", "_future", "_past", "url_", "uuid_version")


def rewrite_errors(errors: Sequence[Any], data: Any, choices: dict[str, list[Any]]) -> tuple[Problem, ...]:
    """Return the problems for pydantic's error list; `data` is what was validated, `choices` known enums by pointer."""
    problems: dict[str, Problem] = {}
    for error in errors:
        path, is_inside = _locate(error, data)
        if path in problems:
            if is_inside is False:
                problems[path] = _union(path, data, error)
            continue
        problems[path] = _problem(error, path, choices) if is_inside else _union(path, data, error)
    failed = [path for path, problem in problems.items() if problem.keyword == "anyOf"]
    kept = [p for p in problems.values() if not any(p.path.startswith(path + "/") for path in failed)]
    return tuple(_in_order(kept))


def _locate(error: Any, data: Any) -> tuple[str, bool]:
    """Follow an error's location through the data; what is not there names a union's branch."""
    path, here = "", data
    steps = error["loc"]
    for index, step in enumerate(steps):
        is_last = index == len(steps) - 1
        if (isinstance(here, dict) and step in here) or (
            isinstance(here, list) and isinstance(step, int) and 0 <= step < len(here)
        ):
            here = here[step]
        elif is_last and error["type"] == "missing":
            return join(path, step), True
        elif isinstance(step, str) and step.startswith("function-"):
            continue
        else:
            return path, False
        path = join(path, step)
    return path, True


def _union(path: str, data: Any, error: Any) -> Problem:
    message = "Input should match one of the allowed forms"
    return Problem(path=path, keyword="anyOf", message=message, got=_value_at(path, data))


def _value_at(path: str, data: Any) -> Any:
    from dispatcher.schema.pointer import split

    for part in split(path):
        data = data[int(part)] if isinstance(data, list) else data.get(part, MISSING)
    return data


def _problem(error: Any, path: str, choices: dict[str, list[Any]]) -> Problem:
    kind, context, got = error["type"], error.get("ctx") or {}, error.get("input", MISSING)
    if kind == "missing":
        return wording.missing(path)
    if kind == "extra_forbidden":
        return Problem(path=path, keyword="additionalProperties", message=error["msg"], got=got)
    if kind in KEYWORDS:
        keyword, name = KEYWORDS[kind]
        return Problem(path=path, keyword=keyword, message=error["msg"], expected=_plain(context.get(name)), got=got)
    if kind in ("literal_error", "enum"):
        return _choice(error, path, choices)
    if kind.startswith("union_tag"):
        return Problem(path=path, keyword="anyOf", message=error["msg"], got=got)
    is_text = isinstance(got, str) and any(mark in kind for mark in _TEXT_FORMATS)
    keyword = "format" if is_text else "type"
    return Problem(path=path, keyword=keyword, message=error["msg"], expected=_expected(kind), got=got)


def _choice(error: Any, path: str, choices: dict[str, list[Any]]) -> Problem:
    import re

    got = error.get("input", MISSING)
    allowed = choices.get(re.sub(r"/\d+(?=/|$)", "/*", path), [])
    types = {wording.type_name(value) for value in allowed}
    if "number" in types:
        types.add("integer")
    keyword = "type" if types and wording.type_name(got) not in types else "enum"
    expected = allowed[:64] or (error.get("ctx") or {}).get("expected")
    return Problem(path=path, keyword=keyword, message=error["msg"], expected=expected, got=got)


def _expected(kind: str) -> str | None:
    names = {"int": "integer", "float": "number", "bool": "boolean", "string": "string", "list": "array",
             "dict": "object", "model": "object", "tuple": "array", "set": "array", "none": "null"}  # fmt: skip
    return names.get(kind.partition("_")[0])


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _in_order(problems: list[Problem]) -> list[Problem]:
    """Sort as C14 has it: at each object the missing names, then its properties in order, then unknown keys."""
    from dispatcher.schema.pointer import split

    seen: dict[tuple[str, ...], int] = {}
    for problem in problems:
        parts = tuple(split(problem.path))
        for end in range(1, len(parts) + 1):
            seen.setdefault(parts[:end], len(seen))

    def key(problem: Problem) -> list[tuple[int, int]]:
        parts = tuple(split(problem.path))
        ranks = [(1, seen[parts[:end]]) for end in range(1, len(parts) + 1)]
        if ranks and problem.keyword in ("required", "additionalProperties"):
            ranks[-1] = (0 if problem.keyword == "required" else 2, ranks[-1][1])
        return ranks

    return sorted(problems, key=key)

"""The whole of JSON Schema 2020-12, through jsonschema-rs (extra `[schema]`), with the core dialect's error shape.

Patterns run in its linear regex engine; its retriever refuses every reference that is not local.
"""

import copy
from collections.abc import Iterator
from typing import Any

from dispatcher.faults import Problem
from dispatcher.schema import wording
from dispatcher.schema.order import in_order
from dispatcher.schema.pointer import join

_DEEPEST = 64
_RENAMED = {
    "constant": "const",
    "oneOfNotValid": "oneOf",
    "oneOfMultipleValid": "oneOf",
    "falseSchema": "additionalProperties",
}


class FullValidator:
    """Validate values against one schema of the full dialect; `schema` is a deep copy of the given one.

    Raises `ValueError` naming the tool, the schema's pointer and the remedy, also when jsonschema-rs is not installed.
    """

    def __init__(self, schema: Any, *, tool: str) -> None:
        if type(schema) is not dict:
            raise ValueError(f"tool {tool!r}: schema (root): a schema must be an object")
        _check_depth(schema, tool)
        self.schema: dict[str, Any] = copy.deepcopy(schema)
        if self.schema.get("type") != "object":
            raise ValueError(f'tool {tool!r}: schema /type: the root must be an object: say "type": "object"')
        self._validator = _build(self.schema, tool)

    def validate(self, value: Any) -> tuple[Problem, ...]:
        """Return the problems, at most one a node, in the core dialect's order where both know the keyword."""
        found: dict[str, Problem] = {}
        for error in self._validator.iter_errors(value):
            for problem in _problems(error):
                found.setdefault(problem.path, problem)
        return in_order(tuple(found.values()), self.schema, value)


def _check_depth(schema: dict[str, Any], tool: str) -> None:
    stack: list[tuple[Any, int]] = [(schema, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > 2 * _DEEPEST:
            raise ValueError(f"tool {tool!r}: schema: deeper than {_DEEPEST} levels")
        children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        stack += [(child, depth + 1) for child in children]


def _refuse(uri: str) -> Any:
    raise ValueError("only local references can be used")


def _build(schema: dict[str, Any], tool: str) -> Any:
    try:
        import jsonschema_rs
    except ImportError:
        raise ValueError(
            f"tool {tool!r}: dialect=\"2020-12\" needs the extra: pip install 'sandboxed-dispatcher[schema]'"
        ) from None
    try:
        return jsonschema_rs.Draft202012Validator(
            schema, pattern_options=jsonschema_rs.RegexOptions(), retriever=_refuse, ignore_unknown_formats=True
        )
    except (ValueError, TypeError) as error:
        where = "".join(f"/{part}" for part in getattr(error, "instance_path", None) or ())
        said = str(getattr(error, "message", error)).splitlines()[0][:300]
        raise ValueError(f"tool {tool!r}: schema {where or '(root)'}: {said}") from None


def _problems(error: Any) -> Iterator[Problem]:
    path = ""
    for part in error.instance_path:
        path = join(path, part)
    keyword = _RENAMED.get(error.kind.name, error.kind.name)
    value = error.instance
    if keyword == "required":
        yield wording.missing(join(path, error.kind.property))
    elif keyword in ("additionalProperties", "unevaluatedProperties") and hasattr(error.kind, "unexpected"):
        for name in error.kind.unexpected:
            got = value.get(name) if isinstance(value, dict) else value
            message = "Extra inputs are not permitted"
            yield Problem(path=join(path, name), keyword=keyword, message=message, got=got)
    elif keyword == "type":
        types = error.kind.types if isinstance(error.kind.types, list) else [error.kind.types]
        yield wording.wrong_type(path, [str(name) for name in types], value)
    elif keyword == "enum":
        options = error.kind.options if hasattr(error.kind, "options") else []
        yield wording.not_in_enum(path, list(options) or ["one of the allowed values"], value)
    else:
        yield _bounded(path, keyword, error, value)


def _bounded(path: str, keyword: str, error: Any, value: Any) -> Problem:
    bound = getattr(error.kind, "limit", getattr(error.kind, "pattern", None))
    if bound is not None:
        return wording.out_of_bounds(path, keyword, bound, value)
    return Problem(path=path, keyword=keyword, message=f"Input does not satisfy {keyword}", got=value)

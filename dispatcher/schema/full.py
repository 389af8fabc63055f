"""The whole of JSON Schema 2020-12, through jsonschema-rs (extra `[schema]`), with the core dialect's error shape.

Patterns run in its linear regex engine; its retriever refuses every reference that is not local.
"""

import copy
import json
from typing import Any

from dispatcher.faults import Problem
from dispatcher.schema import wording
from dispatcher.schema.ambiguity import refuse_ambiguity
from dispatcher.schema.full_errors import rewrite_errors

_DEEPEST = 64


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
        refuse_ambiguity(self.schema, tool=tool, remedy="let one form lead back to it")

    def validate(self, value: Any) -> tuple[Problem, ...]:
        """Return the problems, at most one a node, in the core dialect's order where both know the keyword.

        In a long value the first alone: the library makes them all, and they could be half a million.
        """
        if self._validator.is_valid(value):
            return ()
        if len(json.dumps(value)) <= wording.EVERY_ERROR_CHARACTERS:
            return rewrite_errors(self._validator.iter_errors(value), self.schema, value)
        return rewrite_errors(self._first_error(value), self.schema, value)

    def _first_error(self, value: Any) -> list[Any]:
        import jsonschema_rs

        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [error]
        return []


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

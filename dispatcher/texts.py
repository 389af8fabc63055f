"""The text form of an error: one exact sentence for each kind of problem (C22). Pure."""

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dispatcher.caps import escape_controls, shorten_path
from dispatcher.codes import CODES
from dispatcher.faults import Fault, Problem
from dispatcher.redaction import redact_text
from dispatcher.schema.pointer import escape, split
from dispatcher.schema.wording import type_name

NAMES_SHOWN = 40
NAMES_CHARACTERS = 900
NAME_CHARACTERS = 64
EXAMPLE_CHARACTERS = 300
_AFTERWARDS = {"read": "Try later or continue without it.", "write": "It may have happened; do not repeat it."}


def seconds(value: float) -> str:
    """Return a number of seconds as people write it: 2, 0.5, 2.5."""
    return f"{value:g}"


def afterwards(effect: str) -> str:
    """Say what may have happened."""
    return _AFTERWARDS[effect]


def label(path: str) -> str:
    """Return a pointer without its first slash."""
    path = "".join("/" + escape(redact_text(part[:4096])[0]) for part in split(path[:65_536]))
    return shorten_path(path)[1:]


def problem_text(problem: Problem) -> str:
    """Say one problem as `label: words`."""
    words = escape_controls(problem.message[:600])
    return f"{label(problem.path)}: {words}" if problem.path else words


def listed_names(names: Sequence[str]) -> str:
    """Return the tools' names, capped."""
    shown: list[str] = []
    length = 0
    for name in names[:NAMES_SHOWN]:
        length += len(name) + 2
        if length > NAMES_CHARACTERS:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def asked_name(name: str) -> str:
    """Return a name as the model wrote it, shortened and escaped."""
    text = escape_controls(name[: NAME_CHARACTERS + 1])
    return text if len(text) <= NAME_CHARACTERS else text[: NAME_CHARACTERS - 1] + "…"


def nearest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the registered name that is nearest to what was asked, if any is near."""
    found = difflib.get_close_matches(name[:128], list(names[:2000]), n=1, cutoff=0.6)
    return found[0] if found else None


def article(value: Any) -> str:
    """Name a value's type with its article: "an array", "null"; what is no JSON value by its Python type."""
    if value is not None and type(value) not in (bool, int, float, str, list, dict):
        return f"a Python {type(value).__name__[:60]}"
    name = type_name(value)
    if name in ("integer", "number"):
        return "a number"
    return name if name == "null" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def example_of(schema: Mapping[str, Any]) -> str:
    """Return an example of the arguments: required properties, from examples, default, enum, else by type."""
    return json.dumps(_example(schema, schema, 0), ensure_ascii=False)[:EXAMPLE_CHARACTERS]


_BY_TYPE: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "null": None}


def _example(node: Any, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(node, Mapping) or depth > 6:
        return {}
    for key in ("examples", "enum"):
        if isinstance(node.get(key), list) and node[key]:
            return node[key][0]
    for key in ("default", "const"):
        if key in node:
            return node[key]
    if isinstance(node.get("$ref"), str):
        return _example(_follow(node["$ref"], root), root, depth + 1)
    if node.get("anyOf"):
        return _example(node["anyOf"][0], root, depth + 1)
    kind = node.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "array":
        return [_example(node["items"], root, depth + 1)] if "items" in node else []
    if kind != "object":
        low = node.get("minimum")
        return low if kind in ("integer", "number") and low is not None else _BY_TYPE.get(str(kind))
    properties = node.get("properties", {})
    return {name: _example(properties.get(name, {}), root, depth + 1) for name in node.get("required", [])}


def _follow(reference: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for part in split(reference[1:]) if reference.startswith("#") else ():
        node = node.get(part, {}) if isinstance(node, Mapping) else {}
    return node


def is_not_an_object(fault: Fault) -> bool:
    """Ask whether the arguments as a whole were of the wrong type."""
    first = fault.problems[0] if fault.problems else None
    return first is not None and first.path == "" and first.keyword == "type"


def error_text(fault: Fault, *, hint: str, effect: str, correlation_id: str, wall_s: float, name: str) -> str:
    """Return the sentence for a fault whose `hint` is already rendered."""
    plain = hint.rstrip(". ")
    if fault.code == "unknown_tool":
        return f"Error: unknown tool '{name}'. {plain.partition('. Nearest')[0]}."
    if fault.code == "invalid_json":
        return f"Error: arguments are not valid JSON ({plain})."
    if fault.code == "invalid_args" and fault.problems:
        if is_not_an_object(fault):
            return f"Error: {plain}."
        return f"Error: invalid arguments: {plain}."
    if fault.code == "internal_error":
        if fault.exposed:
            return f"Error: the tool failed ({fault.exposed})."
        return f"Error: the tool failed (internal_error, id {correlation_id}). {plain}."
    if fault.code == "timeout" and fault.reason is None:
        tail = f" {_AFTERWARDS['write']}" if effect == "write" else ""
        return f"Error: the tool timed out after {seconds(wall_s)} s (timeout, id {correlation_id}).{tail}"
    shown_id = f", id {correlation_id}" if CODES[fault.code].has_id else ""
    return f"Error: {plain} ({fault.code}{shown_id})."

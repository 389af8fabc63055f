"""Check a declared return type on the JSON that the worker answered (C3): declarative types only, in the host."""

import collections.abc
import inspect
import json
import types
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import pydantic
from pydantic_core import SchemaValidator, ValidationError

from dispatcher.schema.ambiguity import WORDS, find_ambiguity
from dispatcher.schema.core_schema import build
from dispatcher.schema.host_code import find_code
from dispatcher.schema.pointer import join
from dispatcher.schema.typed import _hints

_STREAMS = (
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.Generator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncGenerator,
)


class ReturnCheck:
    """Hold the check of one declared return type."""

    def __init__(self, validator: SchemaValidator) -> None:
        self._validator = validator

    def check(self, value: Any) -> tuple[str, str] | None:
        """Return path and hint of the first place that is not of the declared type, `None` if all is."""
        try:
            text = json.dumps(value, ensure_ascii=False)
            self._validator.validate_json(text, strict=True, by_alias=True, by_name=True)  # a model is dumped by name
        except ValidationError as error:
            path = ""
            here: Any = value
            for step in error.errors(include_url=False)[0]["loc"]:
                try:
                    here = here[step]
                except (KeyError, IndexError, TypeError):
                    break
                path = join(path, step)
            return path, "is not of the declared return type"
        return None


def build_return_check(function: Callable[..., Any], tool: str) -> ReturnCheck | None:
    """Return the check of a function's declared return type, `None` where there is nothing to check in the host."""
    annotation = _hints(function, tool).get("return", Any)
    if annotation in (Any, inspect.Signature.empty):
        return None
    if get_origin(annotation) in _STREAMS:
        inner = get_args(annotation)[0]
        annotation = types.GenericAlias(list, (inner,))
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(annotation)
        schema = adapter.core_schema
        if find_code(schema) is not None:
            return None  # it would run the tool's own code; its model has built itself in the worker already
        _refuse_impossible(schema)
        _refuse_ambiguity(adapter)
        return ReturnCheck(build(schema, first_only=True))
    except Exception as error:
        raise ValueError(f"tool {tool!r}: its return annotation cannot be checked: {str(error)[:200]}") from None


_NO_RESULTS = {
    "set": "a set has no order: return a list",
    "frozenset": "a set has no order: return a list",
    "bytes": "bytes are not text: return a string",
    "complex": "a complex number is not JSON",
}
_NO_KEYS = ("int", "float", "bool", "bytes", "date", "datetime", "time", "timedelta", "uuid", "decimal")


def _refuse_impossible(node: Any) -> None:
    """Refuse a type that no result can be of (C30), where it must be one: in a union another form may be."""
    if isinstance(node, list | tuple):
        for child in node:
            _refuse_impossible(child)
    elif isinstance(node, Mapping) and node.get("type") not in _EITHER:
        kind = str(node.get("type", ""))
        key = node.get("keys_schema", {}).get("type") if kind == "dict" else None
        if kind in _NO_RESULTS:
            raise ValueError(_NO_RESULTS[kind])
        if key in _NO_KEYS:
            raise ValueError(f"a key of a result is a string, never {key}")
        for name, child in node.items():
            if name not in ("serialization", "metadata"):
                _refuse_impossible(child)


_EITHER = ("nullable", "union", "tagged-union", "json-or-python", "lax-or-strict")


def _refuse_ambiguity(adapter: "pydantic.TypeAdapter[Any]") -> None:
    """Refuse a type whose check a hostile result could make exponential: here nothing bounds its time."""
    ambiguous = find_ambiguity(adapter.json_schema(), is_typed=True)
    if ambiguous is not None:
        raise ValueError(f"at {ambiguous} it {WORDS}; give its forms a discriminator")

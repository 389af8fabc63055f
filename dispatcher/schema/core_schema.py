"""Walk and rewrite pydantic's core schemas: refuse what would run code in the host, match patterns with RE2 (C5).

Booleans are kept out of integer Literals and Enums (C3), and patterns run in linear time.
"""

from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticCustomError, SchemaValidator

from dispatcher.schema.patterns import compile_pattern

PLAIN_FACTORIES = (list, dict, set, tuple, frozenset)
_OWN_MODULES = ("pydantic", "pydantic_core", "annotated_types")
_STDLIB_FUNCTIONS = ("fractions", "ipaddress", "uuid", "pathlib", "decimal", "datetime", "re", "zoneinfo")


def find_code(node: Any, path: tuple[str, ...] = ()) -> str | None:
    """Return the words for the first part of a core schema that would run the user's code, `None` if there is none."""
    if isinstance(node, list | tuple):
        return next((found for item in node if (found := find_code(item, path)) is not None), None)
    if not isinstance(node, dict):
        return None
    kind = str(node.get("type", ""))
    if (kind.startswith("function") and "schema" in node) or kind == "function-plain":
        function = _function(node)
        if function is not None and not _is_ours(function):
            return f"the validator {getattr(function, '__qualname__', function)!s:.80}"
    factory = node.get("default_factory")
    if factory is not None and factory not in PLAIN_FACTORIES:
        return f"the default factory {getattr(factory, '__qualname__', factory)!s:.80}"
    if node.get("regex_engine") == "python-re" or (node.get("config") or {}).get("regex_engine") == "python-re":
        return "regex_engine='python-re'"
    if kind == "custom-error" or (kind == "model" and node.get("post_init")):
        return "a post-init hook"
    children = (value for key, value in node.items() if key not in ("serialization", "metadata", "cls", "ref"))
    return next((found for child in children if (found := find_code(child, path)) is not None), None)


def _function(node: dict[str, Any]) -> Callable[..., Any] | None:
    holder = node.get("function")
    function = holder.get("function") if isinstance(holder, dict) else holder
    return function if callable(function) else None


def _is_ours(function: Callable[..., Any]) -> bool:
    module = getattr(function, "__module__", None) or type(function).__module__
    return module.partition(".")[0] in (*_OWN_MODULES, *_STDLIB_FUNCTIONS, "builtins")


def rewrite(node: Any) -> Any:
    """Return a copy of a core schema with patterns and int choices wrapped; ValueError for what RE2 cannot run."""
    if isinstance(node, list):
        return [rewrite(item) for item in node]
    if isinstance(node, tuple):
        return tuple(rewrite(item) for item in node)
    if not isinstance(node, dict):
        return node
    copied = {
        key: value if key in ("serialization", "metadata", "cls") else rewrite(value) for key, value in node.items()
    }
    if copied.get("type") == "str" and isinstance(copied.get("pattern"), str):
        return _with_pattern(copied)
    if copied.get("type") == "literal":
        return _without_booleans(copied, copied["expected"])
    if copied.get("type") == "enum":
        return _without_booleans(copied, [member.value for member in copied["members"]])
    return copied


def build(core_schema: Any) -> SchemaValidator:
    """Return a validator for a rewritten schema, built anew at every depth."""
    rewritten = rewrite(core_schema)
    try:
        return SchemaValidator(rewritten, _use_prebuilt=False)
    except TypeError:  # an older pydantic-core, which never takes prebuilt parts
        return SchemaValidator(rewritten)


def _with_pattern(node: dict[str, Any]) -> dict[str, Any]:
    text = node.pop("pattern")
    pattern = compile_pattern(text)

    def check(value: str) -> str:
        if pattern.matches(value):
            return value
        raise PydanticCustomError(
            "string_pattern_mismatch", "String should match pattern '{pattern}'", {"pattern": text}
        )

    return {"type": "function-after", "function": {"type": "no-info", "function": check}, "schema": node}


def _without_booleans(node: dict[str, Any], expected: list[Any]) -> dict[str, Any]:
    if any(type(value) is bool for value in expected) or not any(isinstance(value, int) for value in expected):
        return node
    words = " or ".join(repr(value) for value in expected)

    def check(value: Any) -> Any:
        if type(value) is bool:
            raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": words})
        return value

    return {"type": "function-before", "function": {"type": "no-info", "function": check}, "schema": node}

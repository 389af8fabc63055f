"""Hold a handler's signature against its raw schema (C5)."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def check_signature(function: Callable[..., Any], schema: Mapping[str, Any], tool: str, injected: str | None) -> None:
    """Raise `ValueError` naming the tool and the parameter when the schema's names cannot be given to the handler."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return  # a builtin without a signature: nothing to hold against
    names = list(schema.get("properties", {}))
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    taken = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)} - {injected}
    if not takes_any:
        if schema.get("additionalProperties") is True:
            raise ValueError(f"tool {tool!r}: schema /additionalProperties: the handler must take **arguments")
        for name in names:
            if name not in taken:
                raise ValueError(f"tool {tool!r}: schema /properties/{name}: the handler has no parameter {name!r}")
    _check_needed(parameters, schema, tool, injected)


def _check_needed(parameters: Any, schema: Mapping[str, Any], tool: str, injected: str | None) -> None:
    required = set(schema.get("required", []))
    for parameter in parameters:
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is parameter.empty:
            raise ValueError(f"tool {tool!r}: parameter {parameter.name!r} is positional-only; arguments go by name")
        is_needed = parameter.default is parameter.empty and parameter.kind in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        )
        if is_needed and parameter.name not in required and parameter.name != injected:
            raise ValueError(
                f"tool {tool!r}: schema /required: the handler needs {parameter.name!r}; require it, or give a default"
            )


def context_parameter(function: Callable[..., Any]) -> str | None:
    """Return the name of the parameter annotated `ToolContext`, if there is one."""
    from dispatcher.context import ToolContext

    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return None
    for name, parameter in parameters.items():
        if parameter.annotation is ToolContext or parameter.annotation == "ToolContext":
            return name
    return None

"""`@tool`: declare a function as a tool where it is written; a registry takes it in elsewhere. Standard library only."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

# What `@tool` and `@registry.tool` take, beside the function.
OPTIONS = frozenset(
    "name description override coerce limits errors effect isolation validate_in show_output redact_result readable".split()
)
_MARK = "__tool_options__"


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(**options: Any) -> Callable[[F], F]: ...
def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a function as a tool, with the options of `Registry.tool`, and return it unchanged.

    `registry.add(function)` registers it. Use it where a module should not know the registry it ends up in. Raises
    `TypeError` for an option that does not exist; everything else is checked when it is registered.
    """
    check_options(options)

    def mark(marked: F) -> F:
        setattr(marked, _MARK, options)
        return marked

    return mark if function is None else mark(function)


def check_options(options: dict[str, Any]) -> None:
    """Raise `TypeError` for an option that does not exist: nothing is accepted and ignored."""
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise TypeError(f"tool() got an unexpected keyword argument {unknown[0]!r}")


def options_of(function: Any) -> dict[str, Any]:
    """Return the options that a function was marked with, none if it was not."""
    found = getattr(function, _MARK, None)
    return dict(found) if isinstance(found, dict) else {}

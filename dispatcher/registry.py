"""The registry: every tool is declared once, and every mistake in a declaration is told at once (C1 to C5)."""

import inspect
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

from dispatcher.coerce import compile_coercions
from dispatcher.context import ToolContext
from dispatcher.declaration import Checked, Tool, refused
from dispatcher.declare import check_options, options_of
from dispatcher.errors import ErrorSpec, catalogue
from dispatcher.faults import Fault
from dispatcher.invalid_json import DEFAULT_BYTES
from dispatcher.returns import build_return_check
from dispatcher.schema.ambiguity import refuse_ambiguity
from dispatcher.schema.core import CoreValidator
from dispatcher.schema.full import FullValidator
from dispatcher.schema.lint import check_signature, context_parameter
from dispatcher.schema.typed import TypedArguments, describe_function
from sandbox import Handler, Limits

F = TypeVar("F", bound=Callable[..., Any])

ADAPTER = "dispatcher.worker:invoke"
VALIDATING_ADAPTER = "dispatcher.worker_validation:invoke"
_SEGMENT = r"[A-Za-z][A-Za-z0-9_-]*"
_NAME = re.compile(rf"{_SEGMENT}(?:\.{_SEGMENT})*")
NAME_CHARACTERS = 128
DIALECTS = ("core", "2020-12")
TIERS = ("A", "B", "C", "D", "E", "none")


class Registry:
    """Hold tools by name, in the order of their registration; thread-safe.

    Mistakes raise `ValueError` or `TypeError` naming the tool, the pointer and the remedy.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._tools: dict[str, Tool] = {}
        self._folded: dict[str, str] = {}

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, function: None = None, /, **options: Any) -> Callable[[F], F]: ...

    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Register the decorated function by its annotations: `@registry.tool` or `@registry.tool(limits=…)`.

        Options are those of `register`, and `name`. The function is returned unchanged.
        """
        check_options(options)
        if function is not None:
            self._register_typed(function, {})
            return function

        def decorate(decorated: F) -> F:
            self._register_typed(decorated, options)
            return decorated

        return decorate

    def add(self, *functions: Callable[..., Any]) -> None:
        """Register functions by their annotations, each with the options that `dispatcher.tool` gave it, if any."""
        for function in functions:
            self._register_typed(function, options_of(function))

    def register(
        self,
        name: str,
        schema: Mapping[str, Any],
        handler: Callable[..., Any] | str,
        description: str = "",
        *,
        override: bool = False,
        coerce: Mapping[str, str | Sequence[str]] | None = None,
        limits: Limits | None = None,
        errors: Mapping[str, str | ErrorSpec] | None = None,
        effect: str = "write",
        isolation: str | None = None,
        dialect: str = "core",
        validate_in: str = "host",
        show_output: bool = False,
        redact_result: bool = True,
        readable: Sequence[str] = (),
    ) -> None:
        """Register a tool by a JSON Schema; `handler` is a callable or "module:qualname", never imported here.

        `readable` grants absolute paths that its workers may read.
        """
        _check_name(name)
        if dialect not in DIALECTS:
            raise ValueError(f"tool {name!r}: dialect must be one of {', '.join(DIALECTS)}, not {dialect!r:.40}")
        if validate_in != "host":
            raise ValueError(
                f"tool {name!r}: validate_in={validate_in!r:.40} is for typed tools; a schema is checked in the host"
            )
        validator = CoreValidator(schema, tool=name) if dialect == "core" else FullValidator(schema, tool=name)
        context = context_parameter(handler) if callable(handler) else None
        if callable(handler):
            check_signature(handler, validator.schema, name, context)
        options = _checked_options(name, limits, errors, effect, isolation, show_output, redact_result)
        tool = Tool(
            name=name,
            description=description,
            schema=validator.schema,
            handler=_handler(name, handler, readable, isolation, ADAPTER),
            coercions=compile_coercions(coerce, validator.schema, name),
            validator=validator,
            typed=None,
            validate_in=validate_in,
            returns=build_return_check(handler, name) if callable(handler) and _is_python(handler) else None,
            context_parameter=context,
            dialect=dialect,
            source=handler if callable(handler) else None,
            **options,
        )
        self._put(tool, override)

    def _register_typed(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        name = options.get("name") or getattr(function, "__name__", "")
        if not callable(function):
            raise TypeError(f"tool() decorates a function, not {type(function).__name__}")
        if name == "<lambda>" or not name:
            raise ValueError("a lambda or an unnamed callable needs name=…")
        _check_name(name)
        typed = describe_function(function, name)
        validate_in = options.get("validate_in", "host")
        _check_place(name, validate_in, typed)
        in_worker = validate_in == "worker"
        validator = _host_half(typed, name) if in_worker else None
        checked = _checked_options(
            name,
            options.get("limits"),
            options.get("errors"),
            options.get("effect", "write"),
            options.get("isolation"),
            options.get("show_output", False),
            options.get("redact_result", True),
        )
        adapter = VALIDATING_ADAPTER if in_worker else ADAPTER
        coerce = {**typed.coerce, **(options.get("coerce") or {})}
        tool = Tool(
            name=name,
            description=options.get("description") or _first_paragraph(function),
            schema=typed.schema,
            handler=_handler(name, function, options.get("readable", ()), options.get("isolation"), adapter),
            coercions=compile_coercions(coerce, typed.schema, name),
            validator=validator,
            typed=None if in_worker else typed,
            validate_in=validate_in,
            returns=build_return_check(function, name),
            context_parameter=typed.context_parameter,
            dialect="typed",
            source=function,
            **checked,
        )
        self._put(tool, bool(options.get("override", False)))

    def _put(self, tool: Tool, override: bool) -> None:
        folded = tool.name.casefold().replace(".", "_").replace("-", "_")
        with self._lock:
            taken = self._folded.get(folded)
            if taken is not None and (taken != tool.name or not override):
                remedy = "pass override=True to replace it" if taken == tool.name else "providers would mix them up"
                raise ValueError(f"tool {tool.name!r}: the name is taken by {taken!r}; {remedy}")
            self._tools[tool.name] = tool
            self._folded[folded] = tool.name

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, `None` if there is none."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        try:
            return self._completed(tool) if tool is not None else None
        except ValueError:  # what is there now cannot travel; the call will say that a name is missing
            return tool

    def names(self) -> list[str]:
        """Return the names in order."""
        with self._lock:
            return list(self._tools)

    def validate(self, name: str, arguments: object = None) -> Checked:
        """Parse, coerce and validate a call without running anything (C17)."""
        tool = self.get(name)
        if tool is None:
            return refused(Fault(code="unknown_tool"))
        limit = tool.limits.arguments_bytes if tool.limits else DEFAULT_BYTES
        return tool.check(arguments, limit_bytes=limit)

    def __iter__(self) -> Iterator[Tool]:
        with self._lock:
            tools = list(self._tools.values())
        return iter([self._completed(tool) for tool in tools])

    def _completed(self, tool: Tool) -> Tool:
        """Make a handler again, once its module or script has gone on; else return the tool as it is."""
        if tool.source is None or not tool.handler.is_outdated(tool.source):
            return tool
        old = tool.handler
        handler = _handler(tool.name, tool.source, old.readable, old.isolation, old.adapter)
        completed = replace(tool, handler=handler)
        with self._lock:
            if self._tools.get(tool.name) is tool:
                self._tools[tool.name] = completed
        return completed

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a tool's name must be a string, not {type(name).__name__}")
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARACTERS:
        raise ValueError(
            f"tool {name[:140]!r}: a name is dotted segments of letters, digits, '_' and '-', each beginning with a "
            f"letter, at most {NAME_CHARACTERS} characters"
        )


def _checked_options(
    name: str, limits: Any, errors: Any, effect: str, isolation: str | None, show_output: bool, redact_result: bool
) -> dict[str, Any]:
    if limits is not None and not isinstance(limits, Limits):
        raise TypeError(f"tool {name!r}: limits must be Limits(...), not {type(limits).__name__}")
    if effect not in ("read", "write"):
        raise ValueError(f"tool {name!r}: effect must be 'read' or 'write', not {effect!r:.40}")
    if isolation is not None and isolation not in TIERS:
        raise ValueError(f"tool {name!r}: isolation must be one of {', '.join(TIERS)}, not {isolation!r:.40}")
    if not redact_result:
        warnings.warn(f"tool {name!r}: its results are not redacted: credentials in them reach the model", stacklevel=4)
    return {
        "limits": limits,
        "errors": catalogue(errors, tool=name),
        "effect": effect,
        "isolation": isolation,
        "show_output": bool(show_output),
        "redact_result": bool(redact_result),
    }


def _check_place(name: str, validate_in: str, typed: TypedArguments) -> None:
    if validate_in not in ("host", "worker"):
        raise ValueError(f"tool {name!r}: validate_in must be 'host' or 'worker', not {validate_in!r:.40}")
    if validate_in == "host" and typed.has_code is not None:
        raise ValueError(
            f"tool {name!r}: {typed.has_code} would run in the host; only declarative constraints may. "
            'Pass validate_in="worker" to run it in the worker'
        )
    if validate_in == "host":
        remedy = 'give its forms a discriminator, or pass validate_in="worker" to check it under the deadline'
        refuse_ambiguity(typed.schema, tool=name, remedy=remedy, is_typed=True)


def _host_half(typed: TypedArguments, name: str) -> CoreValidator | FullValidator | None:
    """Return what the host can check of a model that is built in the worker: what its JSON Schema says."""
    try:
        return CoreValidator(typed.schema, tool=name)
    except ValueError:
        try:
            return FullValidator(typed.schema, tool=name)
        except ValueError:
            return None  # the worker's own check covers everything


def _handler(
    name: str, target: Callable[..., Any] | str, readable: Sequence[str], isolation: str | None, adapter: str
) -> Handler:
    try:
        return Handler.of(target, readable=readable, adapter=adapter, isolation=isolation)
    except (ValueError, TypeError) as error:
        raise type(error)(f"tool {name!r}: {error}") from error


def _is_python(handler: Callable[..., Any]) -> bool:
    return inspect.isfunction(handler) or inspect.ismethod(handler)


def _first_paragraph(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function) or ""
    return " ".join(text.split("\n\n")[0].split())


__all__ = ["Registry", "ToolContext"]

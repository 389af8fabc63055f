"""A tool: a declaration, and the check of arguments that goes with it. No process is involved here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dispatcher import coerce as coercion
from dispatcher.errors import ErrorSpec
from dispatcher.facts import ToolFacts
from dispatcher.faults import Fault, Problem, Reject
from dispatcher.parse import parse_arguments
from dispatcher.schema.core import CoreValidator
from dispatcher.schema.full import FullValidator
from dispatcher.schema.typed import TypedArguments
from sandbox import Handler, Limits

_PLAIN = frozenset({str, int, float, bool, type(None)})


class ReturnChecker(Protocol):
    """Check a JSON value against a declared return type."""

    def check(self, value: Any) -> tuple[str, str] | None:
        """Return path and hint of the first mismatch, or `None`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentError:
    """Show one problem of `registry.validate`: pointer, keyword, words, and what was expected."""

    path: str
    keyword: str
    message: str
    expected: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Hold what `registry.validate` answers (C17). `plain` says that the arguments are JSON values."""

    ok: bool
    arguments: dict[str, Any] | None = None
    code: str | None = None
    reason: str | None = None
    errors: tuple[ArgumentError, ...] = ()
    fault: Fault | None = None
    plain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Hold one registered tool; `schema` is what the model sees. Printed it is its name and description."""

    name: str
    description: str
    schema: dict[str, Any] = field(repr=False)
    handler: Handler = field(repr=False)
    coercions: coercion.Plan = field(repr=False)
    validator: CoreValidator | FullValidator | None = field(repr=False)
    typed: TypedArguments | None = field(repr=False)
    limits: Limits | None
    errors: Mapping[str, ErrorSpec]
    effect: str
    isolation: str | None
    validate_in: str
    show_output: bool
    redact_result: bool
    returns: ReturnChecker | None = field(repr=False)
    context_parameter: str | None
    dialect: str
    source: Callable[..., Any] | None = field(default=None, repr=False)

    @property
    def facts(self) -> ToolFacts:
        """Give what rendering may know."""
        return ToolFacts(name=self.name, schema=self.schema, effect=self.effect, errors=self.errors)

    def check(self, raw: object, *, limit_bytes: int) -> Checked:
        """Parse, coerce and validate (C6 to C16). Pure; never raises for any input."""
        try:
            arguments = coercion.apply(self.coercions, parse_arguments(raw, limit_bytes=limit_bytes))
            return self._validate(arguments)
        except Reject as reject:
            return refused(reject.fault)

    def _validate(self, arguments: dict[str, Any]) -> Checked:
        if self.validator is not None:
            problems = self.validator.validate(arguments)
            values = arguments
        elif self.typed is not None:
            values, problems = self.typed.check(arguments)
        else:
            values, problems = arguments, ()
        if problems:
            return refused(Fault(code="invalid_args", problems=problems))
        return Checked(ok=True, arguments=values, plain=self.typed is None or is_plain(values))


def refused(fault: Fault) -> Checked:
    """Return the answer for a fault."""
    return Checked(
        ok=False, code=fault.code, reason=fault.reason, errors=tuple(map(_public, fault.problems)), fault=fault
    )


def _public(problem: Problem) -> ArgumentError:
    return ArgumentError(path=problem.path, keyword=problem.keyword, message=problem.message, expected=problem.expected)


def is_plain(value: Any) -> bool:
    """Ask whether a value is made of exact JSON types alone."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind is list:
        return all(is_plain(item) for item in value)
    return kind is dict and all(type(key) is str and is_plain(item) for key, item in value.items())

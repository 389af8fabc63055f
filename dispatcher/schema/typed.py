"""The bridge from a typed function to a schema, a validator and its coercions (C3, C5)."""

import functools
import inspect
import json
import operator
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

import pydantic
from pydantic_core import SchemaValidator, ValidationError

from dispatcher.coerce import Coercion
from dispatcher.context import ToolContext
from dispatcher.faults import Problem
from dispatcher.schema import wording
from dispatcher.schema.core_schema import build
from dispatcher.schema.host_code import find_code, find_uncopyable, find_unfit
from dispatcher.schema.pointer import join
from dispatcher.schema.typed_errors import rewrite_errors

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedArguments:
    """Hold what a typed function's signature says: schema, validator, coercions, where the context goes.

    `has_code` says in words what would run the user's code in the host, `None` when only declarative constraints do.
    """

    schema: dict[str, Any]
    coerce: dict[str, tuple[str, ...]]
    context_parameter: str | None
    has_code: str | None
    _validator: SchemaValidator
    _hasty: Callable[[], SchemaValidator]  # makes, when it is first needed, one that ends each list at its first error

    def check(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], tuple[Problem, ...]]:
        """Return the annotated Python values for JSON arguments, or the problems; JSON-strict at every depth."""
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        validator = self._validator if len(text) <= wording.EVERY_ERROR_CHARACTERS else self._hasty()
        try:
            model = _validate(validator, text)
        except ValidationError as error:
            if error.error_count() > wording.MOST_PROBLEMS:
                error = self._first_errors(text) or error
            listed = error.errors(include_url=False)[: wording.MOST_PROBLEMS]
            return {}, rewrite_errors(listed, arguments, self.schema)
        except ArithmeticError:  # of a number that pydantic's own checks cannot reckon with
            return {}, (Problem(path="", keyword="validator", message="A number is out of range"),)
        return {
            name: getattr(model, name) for name in type(model).__pydantic_fields__ if name in model.model_fields_set
        }, ()

    def _first_errors(self, text: str) -> ValidationError | None:
        try:
            _validate(self._hasty(), text)
        except ValidationError as error:
            return error
        return None


def _validate(validator: SchemaValidator, text: str) -> Any:
    # By its alias alone: a second name for a property would be one that no schema tells.
    return validator.validate_json(text, strict=True, extra="forbid", by_alias=True, by_name=False)


def describe_function(function: Callable[..., Any], tool: str) -> TypedArguments:
    """Read a function's signature; ValueError naming tool, parameter and remedy for what cannot be a tool's."""
    signature = _signature(function, tool)
    hints = _hints(function, tool)
    context_parameter = None
    fields: dict[str, Any] = {}
    coerce: dict[str, tuple[str, ...]] = {}
    for name, parameter in signature.parameters.items():
        annotation = hints.get(name, parameter.annotation)
        if annotation is ToolContext or ToolContext in get_args(annotation):
            context_parameter = name
            continue
        _check_parameter(parameter, annotation, tool)
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[name] = (_described(annotation), default)
        coerce.update(_coercions(annotation, join("", _alias(annotation, name)), 0))
    model = _model(fields, tool)
    unfit = find_unfit(model.__pydantic_core_schema__)
    if unfit is not None:
        raise ValueError(f"tool {tool!r}: its parameters cannot be arguments: {unfit}")
    has_code = find_code(model.__pydantic_core_schema__)
    uncopyable = find_uncopyable(model.__pydantic_core_schema__) if has_code is None else None
    if uncopyable is not None:
        raise ValueError(f"tool {tool!r}: its parameters cannot be arguments: {uncopyable}")
    schema = _schema(model, tool)
    return TypedArguments(
        schema=schema,
        coerce=coerce,
        context_parameter=context_parameter,
        has_code=has_code,
        _validator=_validator(model, tool),
        _hasty=functools.cache(lambda: _validator(model, tool, first_only=True)),
    )


def _signature(function: Callable[..., Any], tool: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"tool {tool!r}: its handler has no signature to read ({error}); register it with a schema"
        ) from None


def _hints(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    target: Any = function
    while hasattr(target, "func") and hasattr(target, "args"):  # functools.partial
        target = target.func
    if not inspect.isroutine(target) and callable(target) and not inspect.isclass(target):
        target = type(target).__call__
    target = inspect.unwrap(getattr(target, "__func__", target))
    names = {}
    for name, cell in zip(target.__code__.co_freevars, target.__closure__ or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    try:
        return typing.get_type_hints(target, localns=names, include_extras=True)
    except Exception as error:
        raise ValueError(
            f"tool {tool!r}: an annotation cannot be resolved: {error}; import it where the handler is defined"
        ) from None


def _check_parameter(parameter: inspect.Parameter, annotation: Any, tool: str) -> None:
    where = f"tool {tool!r}: parameter {parameter.name!r}"
    if parameter.kind in _VARIADIC:
        raise ValueError(f"{where} is {parameter.kind.description}; a typed tool takes named parameters only")
    if annotation is inspect.Parameter.empty and parameter.name in ("self", "cls"):
        raise ValueError(f"{where} belongs to a method: register the bound method of an instance")
    if annotation is inspect.Parameter.empty:
        raise ValueError(f"{where} has no annotation; annotate it, or register the tool with a schema")


def _described(annotation: Any) -> Any:
    """Let a plain text in `Annotated` describe the parameter, as elsewhere."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *marks = get_args(annotation)
    described = [pydantic.Field(description=mark) if isinstance(mark, str) else mark for mark in marks]
    return operator.getitem(Annotated, (kind, *described))


def _model(fields: dict[str, Any], tool: str) -> type[pydantic.BaseModel]:
    config = pydantic.ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=False,
                                 protected_namespaces=())  # fmt: skip
    try:
        return pydantic.create_model("Arguments", __config__=config, **fields)
    except Exception as error:
        raise ValueError(f"tool {tool!r}: its parameters cannot be a schema: {_explain(error)}") from None


def _explain(error: Exception) -> str:
    """Return pydantic's first sentence, and our remedy for a class that it does not know."""
    words = " ".join(str(error).split())
    if isinstance(error, pydantic.errors.PydanticSchemaGenerationError):
        first = words.partition(". ")[0][:300]
        return f"{first}; annotate a pydantic model, a dataclass, a TypedDict or JSON types, or register a schema"
    return words if len(words) <= 400 else words[:399] + "…"


def _validator(model: type[pydantic.BaseModel], tool: str, *, first_only: bool = False) -> SchemaValidator:
    try:
        return build(model.__pydantic_core_schema__, first_only=first_only)
    except ValueError as error:
        raise ValueError(f"tool {tool!r}: a pattern of its parameters: {error}") from None


def _schema(model: type[pydantic.BaseModel], tool: str) -> dict[str, Any]:
    try:
        schema = model.model_json_schema()
    except Exception as error:
        raise ValueError(f"tool {tool!r}: its parameters have no JSON Schema: {str(error)[:200]}") from None
    cleaned: dict[str, Any] = _clean(schema)
    cleaned.setdefault("properties", {})
    cleaned["additionalProperties"] = False
    return cleaned


def _clean(node: Any) -> Any:
    """Drop generated titles and close every object."""
    if isinstance(node, list):
        return [_clean(item) for item in node]
    if not isinstance(node, dict):
        return node
    cleaned: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            cleaned[key] = {name: _clean(child) for name, child in value.items()}
        elif key in ("default", "examples", "enum", "const"):
            cleaned[key] = value
        elif key != "title":
            cleaned[key] = _clean(value)
    if "properties" in cleaned:
        cleaned.setdefault("additionalProperties", False)
        if cleaned["additionalProperties"] is True:
            cleaned["additionalProperties"] = False
    return cleaned


def _alias(annotation: Any, name: str) -> str:
    for mark in get_args(annotation)[1:] if get_origin(annotation) is Annotated else ():
        alias = getattr(mark, "alias", None)
        if isinstance(alias, str):
            return alias
    return name


def _coercions(annotation: Any, path: str, depth: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the coercions that an annotation declares, at any depth, by pointer."""
    if depth > 8:
        return
    if get_origin(annotation) is Annotated:
        marks = tuple(str(mark) for mark in get_args(annotation)[1:] if isinstance(mark, Coercion))
        if marks:
            yield path, marks
        yield from _coercions(get_args(annotation)[0], path, depth + 1)
    elif get_origin(annotation) in (list, tuple, set, frozenset):
        yield from _coercions(get_args(annotation)[0], f"{path}/*", depth + 1)
    elif isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        for name, info in annotation.model_fields.items():
            inner = join(path, info.alias or name)
            marks = tuple(str(mark) for mark in info.metadata if isinstance(mark, Coercion))
            if marks:
                yield inner, marks
            yield from _coercions(info.annotation, inner, depth + 1)
    else:
        for branch in get_args(annotation):
            yield from _coercions(branch, path, depth + 1)

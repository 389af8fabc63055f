"""Worker side of `validate_in="worker"`: build the model under the deadline, then call the handler.

Loaded only in the zygotes of such tools: it brings pydantic.
"""

import functools
from collections.abc import Callable
from typing import Any

from dispatcher import worker
from dispatcher.faults import Problem
from dispatcher.schema.typed import TypedArguments, describe_function
from sandbox.worker import Labelled


@functools.cache
def _described(function: Callable[..., Any]) -> TypedArguments:
    return describe_function(function, "tool")


def invoke(function: Callable[..., Any], arguments: dict[str, Any], job: Any) -> Labelled:
    """Return the "invalid" problems when the model refuses the arguments, else what `worker.invoke` returns."""
    values, problems = _described(function).check(arguments)
    if problems:
        return Labelled("invalid", [_as_json(problem) for problem in problems[:64]])
    return worker.invoke(function, values, job)


def _as_json(problem: Problem) -> dict[str, Any]:
    return {
        "path": problem.path,
        "keyword": problem.keyword,
        "message": problem.message[:500],
        "expected": problem.expected,  # out of the JSON Schema
    }

"""Worker side: call a tool's handler, give it its context, and tell a reported error from data. Standard library only."""

from collections.abc import Callable
from typing import Any

from dispatcher.context import ToolContext
from dispatcher.errors import ToolError, report_of
from sandbox.worker import Labelled, settle


def invoke(function: Callable[..., Any], arguments: dict[str, Any], job: Any) -> Labelled:
    """Return the "result", or the "report" of a known problem; let every other exception through."""
    name = job.context.get("context_parameter")
    if name:
        arguments = {**arguments, name: make_context(job)}
    try:
        result = settle(function(**arguments))
    except ToolError as error:
        return Labelled("report", error.to_report())
    report = report_of(result)
    return Labelled("report", report) if report is not None else Labelled("result", result)


def make_context(job: Any) -> ToolContext:
    """Return the handler's view of its job."""
    return ToolContext(
        call_id=job.context.get("call_id"),
        correlation_id=job.context.get("correlation_id", ""),
        deadline=job.deadline,
        _send=job.progress,
    )

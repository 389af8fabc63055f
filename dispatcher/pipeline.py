"""The pipeline of one call, in one flat list; every stage is a plain function over the call's state.

    BEFORE   find_tool, check_arguments, check_isolation      host only; a fault here uses no worker (C18)
    (run)    the executor: one job in the sandbox
    AFTER    read_outcome, check_return                        from evidence to result or fault
    (finish) render and record, always, also for faults

A stage raises `Reject`; it is caught here and nowhere else.
"""

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dispatcher.declaration import Checked, Tool
from dispatcher.errors import report_of, resolve_report
from dispatcher.faults import Fault, Problem, Reject
from dispatcher.ids import new_correlation_id
from dispatcher.redaction import redact_text
from dispatcher.registry import Registry
from sandbox import Limits, Outcome, Probe, Verdict, at_least

RETRY_AFTER_S = 1.0
DEFAULT_LIMITS = Limits()
_UNAVAILABLE = {
    Verdict.OVERLOADED: ("overloaded", "Too many calls are running; try again shortly"),
    Verdict.NO_SANDBOX: ("no_sandbox", "The tool could not be started; try later"),
    Verdict.PRELOAD: ("preload", "The tool is out of service: its module cannot be loaded"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Hold what every call of a dispatcher shares."""

    registry: Registry
    limits: Limits
    probe: Probe
    expose_exceptions: bool


@dataclass(slots=True, kw_only=True)
class State:
    """Hold one call on its way through the stages."""

    name: str
    raw: Any
    call_id: str | None
    timeout_s: float | None
    until: float | None = None
    began: float = field(default_factory=time.monotonic)
    correlation_id: str = field(default_factory=new_correlation_id)
    tool: Tool | None = None
    limits: Limits = DEFAULT_LIMITS
    checked: Checked | None = None
    outcome: Outcome | None = None
    result: Any = None
    fault: Fault | None = None


Stage = Callable[[State, Surroundings], None]


def find_tool(state: State, around: Surroundings) -> None:
    """Find the tool that was asked for."""
    state.tool = around.registry.get(state.name)
    if state.tool is None:
        raise Reject(Fault(code="unknown_tool"))
    state.limits = (state.tool.limits or around.limits).shortened(state.timeout_s)


def check_arguments(state: State, around: Surroundings) -> None:
    """Parse, coerce, validate."""
    assert state.tool is not None
    state.checked = state.tool.check(state.raw, limit_bytes=state.limits.arguments_bytes)
    if state.checked.fault is not None:
        raise Reject(state.checked.fault)


def check_isolation(state: State, around: Surroundings) -> None:
    """Refuse a tool whose own minimum this host is below (C19)."""
    assert state.tool is not None
    minimum = state.tool.isolation
    if minimum is None or at_least(around.probe.tier, minimum):
        return
    missing = ", ".join(around.probe.missing) or "nothing that a probe names"
    hint = f"This tool needs isolation {minimum}; this host gives {around.probe.tier} (missing: {missing})"
    raise Reject(Fault(code="denied", reason="isolation", hint=hint))


def check_budget(state: State, around: Surroundings) -> None:
    """Refuse a call whose batch has no time left."""
    if state.until is not None and time.monotonic() >= state.until:
        raise Reject(
            Fault(code="unavailable", reason="budget", hint="The batch's time was spent before it could start")
        )


def read_outcome(state: State, around: Surroundings) -> None:
    """Turn what the sandbox saw into a result or a fault."""
    assert state.outcome is not None and state.tool is not None
    if state.outcome.verdict is not Verdict.OK:
        raise Reject(_fault_of(state.outcome, state, around))
    value = state.outcome.value
    if not isinstance(value, dict) or len(value) != 1:
        raise Reject(Fault(code="internal_error", reason="protocol_violation", detail="an answer of the wrong shape"))
    if "report" in value and (report := report_of(value["report"])) is not None:
        raise Reject(resolve_report(report, state.tool.errors, state.tool.effect))
    if "invalid" in value and state.tool.validate_in == "worker":
        raise Reject(_invalid(value["invalid"]))
    if "result" not in value:
        raise Reject(Fault(code="internal_error", reason="protocol_violation", detail="an answer of the wrong shape"))
    state.result = value["result"]


def check_return(state: State, around: Surroundings) -> None:
    """Hold the result against the declared return type."""
    assert state.tool is not None
    mismatch = state.tool.returns.check(state.result) if state.tool.returns is not None else None
    if mismatch is not None:
        path, words = mismatch
        raise Reject(
            Fault(
                code="internal_error",
                reason="bad_result",
                path=path,
                hint=f"Its result{_at(path)} {words}",
                detail=f"the result{_at(path)} {words}",
            )
        )


BEFORE: tuple[Stage, ...] = (find_tool, check_arguments, check_isolation, check_budget)
AFTER: tuple[Stage, ...] = (read_outcome, check_return)


def run_stages(stages: tuple[Stage, ...], state: State, around: Surroundings) -> bool:
    """Run stages in order; return whether all passed. A fault, also one of our own making, stays in the state."""
    try:
        for stage in stages:
            stage(state, around)
    except Reject as reject:
        state.fault = reject.fault
        return False
    except Exception as error:
        set_own_fault(state, error)
        return False
    return True


def set_own_fault(state: State, error: BaseException) -> None:
    """Answer a bug of ours like any other failure: a code, an id, and the cause in the log."""
    logging.getLogger("dispatcher").error("internal error %s", state.correlation_id, exc_info=error)
    state.fault = Fault(
        code="internal_error", reason="handler_error", detail=f"dispatcher: {type(error).__name__}: {error}"[:500]
    )


def _fault_of(outcome: Outcome, state: State, around: Surroundings) -> Fault:
    verdict = outcome.verdict
    if verdict in _UNAVAILABLE:
        return _unavailable(outcome, state)
    if verdict is Verdict.TIMEOUT:
        return Fault(code="timeout", detail=outcome.detail)
    if verdict is Verdict.CANCELLED:
        return Fault(code="cancelled", detail=outcome.detail)
    failure = outcome.failure
    if verdict is Verdict.BAD_RESULT and failure is not None:
        hint = f"Its result{_at(failure.path)} cannot be written as JSON"
        return Fault(code="internal_error", reason="bad_result", path=failure.path, hint=hint, detail=failure.hint)
    exposed = ""
    if around.expose_exceptions and failure is not None and verdict is Verdict.HANDLER_ERROR:
        said = f"{failure.type}: {failure.message}" if failure.message else failure.type
        exposed = redact_text(" ".join(said.split())[:300])[0]
    return Fault(code="internal_error", reason=verdict.value, exposed=exposed, detail=outcome.detail)


def _unavailable(outcome: Outcome, state: State) -> Fault:
    reason, hint = _UNAVAILABLE[outcome.verdict]
    if state.until is not None and reason == "overloaded" and time.monotonic() >= state.until:
        return Fault(code="unavailable", reason="budget", hint="The batch's time was spent before it could start")
    wait = RETRY_AFTER_S if reason == "overloaded" else None
    return Fault(code="unavailable", reason=reason, hint=hint, retry_after=wait, detail=_remedy(reason, outcome.detail))


def _remedy(reason: str, detail: str) -> str:
    if reason != "preload":
        return detail
    if detail.startswith(("ModuleNotFoundError", "AttributeError")):
        return f"{detail} (is the name right, and the module where the host's sys.path leads?)"
    return f"{detail} (remedies: a leaner module, an import inside the handler, or a closure that travels by value)"


_KEYWORD = re.compile(r"[$a-zA-Z]{1,24}")


def _invalid(problems: Any) -> Fault:
    found = []
    for problem in problems if isinstance(problems, list) else []:
        if isinstance(problem, dict) and all(isinstance(problem.get(k), str) for k in ("path", "keyword", "message")):
            path, expected = problem["path"], _scalars(problem.get("expected"))
            if path == "" or path.startswith("/"):
                words = problem["message"]
                keyword = problem["keyword"] if _KEYWORD.fullmatch(problem["keyword"]) else "validator"
                found.append(Problem(path=path, keyword=keyword, message=words, expected=expected))
    if not found:
        return Fault(code="internal_error", reason="protocol_violation", detail="an answer of the wrong shape")
    return Fault(code="invalid_args", problems=tuple(found))


def _scalars(expected: Any) -> Any:
    values = expected if isinstance(expected, list) else [expected]
    return expected if all(isinstance(value, str | int | float | None) for value in values) else None


def _at(path: str) -> str:
    from dispatcher.caps import shorten_path

    return f" at {shorten_path(path)[:200]}" if path else ""

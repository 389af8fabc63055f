"""Finish a call: render the observation, count it, write the record. The last step of every call, faults included."""

import time
from datetime import UTC, datetime
from typing import Any

from dispatcher.caps import to_json_text
from dispatcher.facts import CallFacts, Timing
from dispatcher.observation import Observation, render_fault, render_success
from dispatcher.pipeline import State, Surroundings
from dispatcher.record import CallRecord
from dispatcher.redaction import redact_text

OUTPUT_RECORDED = 16_384
NAME_RECORDED = 128


def render(state: State, around: Surroundings) -> Observation:
    """Return what the model reads."""
    call = _facts(state)
    tool = state.tool
    if state.fault is None and tool is not None and state.outcome is not None:
        return render_success(
            state.result,
            call=call,
            cap_bytes=state.limits.observation_bytes,
            output=_printed(state) if tool.show_output else None,
            redact=tool.redact_result,
        )
    assert state.fault is not None
    return render_fault(
        state.fault, call=call, tool=tool.facts if tool else None, names=() if tool else around.registry.names()
    )


def _facts(state: State) -> CallFacts:
    outcome = state.outcome
    total = time.monotonic() - state.began
    timing = Timing(
        queued_s=outcome.queued_s if outcome else 0.0, run_s=outcome.run_s if outcome else 0.0, total_s=total
    )
    wall_s = state.limits.wall_s
    if outcome is not None and state.until is not None:
        wall_s = min(wall_s, round(outcome.run_s, 3))
    return CallFacts(
        name=state.name,
        correlation_id=state.correlation_id,
        call_id=state.call_id,
        timing=timing,
        receipt=outcome.receipt if outcome and outcome.started else None,
        wall_s=wall_s,
    )


def make_record(state: State, observation: Observation) -> CallRecord:
    """Return what people read: everything worth knowing, redacted and capped."""
    outcome, fault = state.outcome, state.fault
    failure = outcome.failure if outcome else None
    usage: dict[str, Any] = {}
    if outcome is not None and outcome.started:
        usage = {"cpu_s": outcome.usage.cpu_s, "peak_memory_bytes": outcome.usage.peak_memory_bytes}
    said = f"{failure.type}: {failure.message}" if failure and failure.type else ""
    return CallRecord(
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        correlation_id=state.correlation_id,
        call_id=_safe(state.call_id, 200) if state.call_id else None,
        tool=state.tool.name if state.tool else _safe(state.name, NAME_RECORDED),
        code=observation.code,
        reason=observation.reason,
        path=observation.path,
        queued_s=round(observation.timing.queued_s, 6),
        run_s=round(observation.timing.run_s, 6),
        total_s=round(observation.timing.total_s, 6),
        bytes_in=_size(state),
        bytes_out=outcome.usage.reply_bytes if outcome else 0,
        usage=usage,
        evidence=_safe((fault.detail if fault else "") or (outcome.detail if outcome else ""), 1_000),
        grant=_safe(failure.grant, 300) if failure else "",
        tier=outcome.receipt.tier if outcome and outcome.started else "",
        output=_safe(_printed(state), OUTPUT_RECORDED),
        output_bytes=outcome.output.total_bytes if outcome else 0,
        exception=_safe(said, 1_000),
        traceback=_safe(failure.traceback, 8_000) if failure else "",
        progress=outcome.progress[0] if outcome else 0,
        redacted=observation.redacted,
    )


def _printed(state: State) -> str:
    """Return what is kept of a tool's output, up to its last whole word: half a credential would not be known as one."""
    if state.outcome is None:
        return ""
    output = state.outcome.output
    if output.total_bytes <= output.kept_bytes:
        return output.text
    return output.text[: max(output.text.rfind(" "), output.text.rfind("\n")) + 1] or output.text[:1024]


def _safe(text: str, limit: int) -> str:
    return redact_text(text[: 2 * limit])[0][:limit]


def _size(state: State) -> int:
    raw = state.raw
    if isinstance(raw, str):
        return len(raw) if raw.isascii() else len(raw.encode("utf-8", "surrogatepass"))
    if isinstance(raw, dict) and state.checked is not None and state.checked.ok:  # else it may be anything
        return len(to_json_text(raw).encode("utf-8", "replace"))
    return len(raw) if isinstance(raw, bytes | bytearray) else 0

"""The observation: what the model reads (C19a to C25). Rendered once, capped so that every form fits."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dispatcher import texts
from dispatcher.caps import (
    PATH_CHARACTERS,
    clean,
    escape_controls,
    json_size,
    longest_prefix,
    shorten_path,
    show,
    to_json_text,
)
from dispatcher.codes import CODES
from dispatcher.facts import CallFacts, Timing, ToolFacts
from dispatcher.faults import MISSING, Fault, Problem
from dispatcher.redaction import MARK, is_secret_key, redact_text, redact_value
from dispatcher.schema.pointer import escape, first_field, split
from sandbox import Receipt

ERROR_BYTES = 2_048
ERRORS_SHOWN = 8
HINT_CHARACTERS = 1_200
_BREAKS = str.maketrans("\n\r\t", "   ")
NO_TIMING = Timing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """Say how much of a result is shown, in code points of its text form."""

    shown: int
    total: int
    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Hold a call's answer. `to_dict`, `to_json` and `to_text` render only what contract rules C20 and C21 allow.

    `code` is "ok" for a success. `errors` hold path, keyword and expected of each problem in the arguments.
    """

    ok: bool
    code: str = "ok"
    reason: str | None = None
    result: Any = None
    errors: tuple[dict[str, Any], ...] = ()
    hint: str = ""
    next: str | None = None
    field: str | None = None
    path: str | None = None
    keyword: str | None = None
    got: str | None = None
    retry_after: float | None = None
    required_permission: str | None = None
    correlation_id: str = ""
    call_id: str | None = None
    timing: Timing = NO_TIMING
    attempts: int = 1
    receipt: Receipt | None = None
    truncated: Truncated | None = None
    output: str | None = None
    redacted: int = 0
    more: int = 0
    _text: str = dataclasses.field(default="", repr=False)

    def __str__(self) -> str:
        return self.to_text()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return self._success() if self.ok else self._error()

    def to_json(self) -> str:
        """Return the compact JSON text of `to_dict`, at most `observation_bytes` (errors: 2 KiB) of UTF-8."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    def to_text(self) -> str:
        """Return the one-string form, under the same cap."""
        return self._text

    def _success(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"ok": True, "result": self.result}
        if self.output is not None:
            shown["output"] = self.output
        if self.truncated is not None:
            cut = self.truncated
            shown["truncated"] = {"shown": cut.shown, "total": cut.total, "of": cut.of}
        if self.redacted:
            shown["redacted"] = self.redacted
        return shown

    def _error(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"ok": False, "error": self.code, "hint": self.hint, "next": self.next}
        for name in ("reason", "field", "path", "keyword"):
            value = getattr(self, name)
            if value is not None:
                shown[name] = value
        if self.errors:
            shown["errors"] = list(self.errors)
        if self.more:
            shown["more"] = self.more
        for name in ("got", "retry_after", "required_permission"):
            value = getattr(self, name)
            if value is not None:
                shown[name] = value
        if CODES[self.code].has_id:
            shown["correlation_id"] = self.correlation_id
        return shown


def render_success(
    result: Any, *, call: CallFacts, cap_bytes: int, output: str | None = None, redact: bool = True
) -> Observation:
    """Return the observation of a success, redacted, then cut once so that both forms fit `cap_bytes`."""
    redacted = 0
    if redact:
        result, redacted = redact_value(result, keys=False)
        if output is not None:
            output, found = redact_text(output, assignments=False)
            redacted += found
    result = clean(result)
    text = result if isinstance(result, str) else to_json_text(result)
    common: dict[str, Any] = {**_common(call), "redacted": redacted}
    whole = Observation(ok=True, result=result, output=output, _text=text, **common)
    if (len(text) * 6 + 256 < cap_bytes and not output) or _fits(whole, cap_bytes):
        return whole
    return _cut(whole, text, cap_bytes, common)


def _fits(observation: Observation, cap_bytes: int) -> bool:
    text = len(observation.to_text().encode("utf-8", "replace"))
    return text <= cap_bytes and len(observation.to_json().encode("utf-8", "replace")) <= cap_bytes


def _cut(whole: Observation, text: str, cap_bytes: int, common: dict[str, Any]) -> Observation:
    output = whole.output
    if output is not None:
        output = output[: longest_prefix(output, cap_bytes // 4)]
    kind = "string" if isinstance(whole.result, str) else "json"
    total = len(text)
    frame = Observation(
        ok=True, result="", output=output, truncated=Truncated(shown=total, total=total, of=kind), **common
    )
    room = cap_bytes - len(frame.to_json().encode("utf-8", "replace"))
    room = min(room, cap_bytes - len(_tail(total)))
    if json_size(text[: room + 1]) <= room and len(text) <= room:  # cutting the output was enough
        return Observation(ok=True, result=whole.result, output=output, _text=text, **common)
    shown = longest_prefix(text, room)
    part = text[:shown]
    truncated = Truncated(shown=shown, total=total, of=kind)
    return Observation(
        ok=True, result=part, output=output, truncated=truncated, _text=part + _tail(total - shown), **common
    )


def _tail(more: int) -> str:
    return f"... [truncated, {more} more characters]"


def render_fault(
    fault: Fault, *, call: CallFacts, tool: ToolFacts | None = None, names: Sequence[str] = ()
) -> Observation:
    """Return the observation of an error; both forms fit 2 KiB whatever it quotes.

    Given up in this order: got, expected, errors after the first, hint. Code, id and keyword are never cut.
    """
    for level in range(7):
        observation = _render_at(level, fault, call, tool, names)
        if _fits(observation, ERROR_BYTES):
            return observation
    return observation


def _render_at(level: int, fault: Fault, call: CallFacts, tool: ToolFacts | None, names: Sequence[str]) -> Observation:
    effect = tool.effect if tool else "write"
    limit = PATH_CHARACTERS if level < 5 else PATH_CHARACTERS // 3
    problems = fault.problems if level < 3 else fault.problems[:1]
    first = problems[0] if problems else None
    path = first.path if first else fault.path
    hint_limit = HINT_CHARACTERS if level < 4 else (400, 120, 0)[level - 4]
    hint = _safe(_hint(fault, problems, call, tool, names, effect))[:hint_limit]
    got = None if level >= 1 else _got(path or "", first.got if first else fault.got)
    shown_errors = tuple(_error_dict(problem, limit, with_expected=level < 2) for problem in problems[:ERRORS_SHOWN])
    text = texts.error_text(
        fault,
        hint=hint,
        effect=effect,
        correlation_id=call.correlation_id,
        wall_s=call.wall_s,
        name=_safe(texts.asked_name(call.name)),
    )
    return Observation(
        ok=False,
        code=fault.code,
        reason=fault.reason,
        errors=shown_errors,
        more=max(0, len(fault.problems) - len(shown_errors)),
        hint=hint,
        next=fault.next or _catalogued_next(fault, tool) or CODES[fault.code].next_for(effect),
        field=_field(path),
        path=safe_path(path, limit) if path is not None else None,
        keyword=first.keyword if first else None,
        got=got,
        retry_after=fault.retry_after,
        required_permission=_safe(fault.required_permission) if fault.required_permission else None,
        _text=clean(text),
        **_common(call),
    )


def _common(call: CallFacts) -> dict[str, Any]:
    return {
        "correlation_id": call.correlation_id,
        "call_id": call.call_id,
        "timing": call.timing,
        "attempts": call.attempts,
        "receipt": call.receipt,
    }


def _catalogued_next(fault: Fault, tool: ToolFacts | None) -> str | None:
    spec = tool.errors.get(fault.code) if tool else None
    return spec.next if spec else None


def safe_path(path: str, limit: int = PATH_CHARACTERS) -> str:
    """Return a pointer without credentials, segment by segment, shortened."""
    if path.startswith("/"):
        path = "".join("/" + escape(redact_text(part[:4096])[0]) for part in split(path[:65_536]))
    return str(clean(shorten_path(path, limit)))


def _safe(text: str) -> str:
    """Return one line of text without credentials and control characters."""
    return escape_controls(redact_text(text)[0].translate(_BREAKS))


def _hint(
    fault: Fault,
    problems: Sequence[Problem],
    call: CallFacts,
    tool: ToolFacts | None,
    names: Sequence[str],
    effect: str,
) -> str:
    if fault.code == "unknown_tool":
        return _unknown_tool_hint(call.name, names)
    if fault.code == "invalid_args" and problems:
        return _arguments_hint(fault, problems, tool)
    if fault.hint:
        return fault.hint
    if fault.exposed:
        return f"the tool failed: {fault.exposed}"
    if fault.code == "internal_error":
        return texts.afterwards(effect).rstrip(".")
    if fault.code == "timeout":
        tail = f". {texts.afterwards('write').rstrip('.')}" if effect == "write" else ""
        return f"It was stopped at its limit of {texts.seconds(call.wall_s)} s{tail}"
    return CODES[fault.code].default_hint


def _unknown_tool_hint(name: str, names: Sequence[str]) -> str:
    nearest = texts.nearest_name(name, names)
    listed = f"Available tools: {texts.listed_names(names)}" if names else "There are no tools"
    return f"{listed}. Nearest: {nearest}" if nearest else listed


def _arguments_hint(fault: Fault, problems: Sequence[Problem], tool: ToolFacts | None) -> str:
    if texts.is_not_an_object(fault):
        example = texts.example_of(tool.schema) if tool else "{}"
        base = f"arguments must be a JSON object such as {example}, not {texts.article(problems[0].got)}"
        return f"{base}. {fault.hint}" if fault.hint else base
    joined = "; ".join(texts.problem_text(problem) for problem in problems[:ERRORS_SHOWN])
    more = len(problems) - ERRORS_SHOWN
    return f"{joined}; and {more} more" if more > 0 else joined


def _field(path: str | None) -> str | None:
    name = first_field(path) if path else None
    return _safe(shorten_path(name)) if name else None


def _got(path: str, value: Any) -> str | None:
    if value is MISSING:
        return None
    if any(is_secret_key(part) for part in split(path) if path.startswith("/")):
        return MARK
    if isinstance(value, str):
        value = value[:4096]
        cleaned, found = redact_text(value)
        return MARK if found and len(cleaned) <= len(MARK) else show(cleaned)
    if isinstance(value, dict) and len(value) < 64:
        value, _ = redact_value(value, keys=True)
    return _safe(show(value))


def _error_dict(problem: Problem, limit: int, *, with_expected: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"path": safe_path(problem.path, limit), "keyword": problem.keyword}
    if with_expected and problem.expected is not None:
        shown["expected"] = redact_value(clean(problem.expected), keys=False)[0]
    return shown

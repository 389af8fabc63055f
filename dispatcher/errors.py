"""What handlers raise, what tools declare, what the host sees raised. Standard library only.

Exception
├── ToolError          a handler's known problem, told to the model with a code of the tool's catalogue
└── DispatcherError
    └── DispatcherClosed   a call after close()
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatcher.codes import CODES, HANDLER_DENIED_REASONS, NEXTS, REPORTABLE, UPSTREAM_ONLY
from dispatcher.faults import Fault

REPORT_KEYS = frozenset({"error", "hint", "reason", "field", "path", "got", "retry_after", "required_permission"})
HINT_CHARACTERS = 16_384  # far more than is shown: a cut comes after redaction, so that it cannot halve a credential
LONGEST_RETRY_AFTER_S = 86_400.0


class DispatcherError(Exception):
    """Stand at the top of what the dispatcher raises at its host."""


class DispatcherClosed(DispatcherError):
    """Say that the dispatcher was closed before the call."""


class ToolError(Exception):
    """Report a known problem from a handler: `raise ToolError("not_found", hint="job ids look like 17")` (C28).

    `reason` is allowed for `denied` only: host, path or amount. `path` is a JSON Pointer into the arguments.
    Raises `ValueError` for a code that a handler may not report.
    """

    def __init__(
        self,
        code: str,
        hint: str = "",
        *,
        reason: str | None = None,
        path: str | None = None,
        retry_after: float | None = None,
        required_permission: str | None = None,
    ) -> None:
        if code not in REPORTABLE:
            raise ValueError(f"a handler cannot report {code!r:.60}; it can report {', '.join(REPORTABLE)}")
        if reason is not None and not (code == "denied" and reason in HANDLER_DENIED_REASONS):
            raise ValueError(f"reason is only for 'denied': {', '.join(HANDLER_DENIED_REASONS)}")
        super().__init__(code, hint)
        self.code = code
        self.hint = hint
        self.reason = reason
        self.path = path
        self.retry_after = retry_after
        self.required_permission = required_permission

    def to_report(self) -> dict[str, Any]:
        """Return the dict form, as a handler might have returned it."""
        fields = {
            "error": self.code,
            "hint": self.hint,
            "reason": self.reason,
            "path": self.path,
            "retry_after": self.retry_after,
            "required_permission": self.required_permission,
        }
        return {key: value for key, value in fields.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """Say how a tool reports one code: its hint, and a stricter `next` or `retry=False`; never looser than the table."""

    hint: str = ""
    next: str | None = None
    retry: bool | None = None


def catalogue(errors: Mapping[str, "str | ErrorSpec"] | None, *, tool: str) -> dict[str, ErrorSpec]:
    """Return a tool's catalogue; ValueError naming tool and code for one that no handler may report, or a looser one."""
    specs: dict[str, ErrorSpec] = {}
    if errors is not None and not isinstance(errors, Mapping):
        raise TypeError(f"tool {tool!r}: errors must map codes to hints, not be {type(errors).__name__}")
    for code, given in (errors or {}).items():
        spec = given if isinstance(given, ErrorSpec) else ErrorSpec(given)
        if code not in REPORTABLE:
            raise ValueError(
                f"tool {tool!r}: errors[{str(code)[:60]!r}]: a handler cannot report it; it can report "
                + ", ".join(REPORTABLE)
            )
        if not isinstance(spec.hint, str):
            raise ValueError(f"tool {tool!r}: errors[{code!r}]: the hint must be a string or an ErrorSpec")
        _check_stricter(code, spec, tool)
        specs[code] = spec
    return specs


def _check_stricter(code: str, spec: ErrorSpec, tool: str) -> None:
    if spec.next is not None:
        if spec.next not in NEXTS:
            raise ValueError(f"tool {tool!r}: errors[{code!r}]: next must be one of {', '.join(NEXTS)}")
        if NEXTS.index(spec.next) < NEXTS.index(CODES[code].next_read):
            raise ValueError(f"tool {tool!r}: errors[{code!r}]: next={spec.next!r} is looser than the code table's")
    if spec.retry is True:
        raise ValueError(f"tool {tool!r}: errors[{code!r}]: retry=True is looser than the code table")


def report_of(result: object) -> dict[str, Any] | None:
    """Return `result` if it is a handler's report of an error, `None` if it is data (C28)."""
    if type(result) is not dict or not result.keys() <= REPORT_KEYS:
        return None
    code = result.get("error")
    return result if isinstance(code, str) and code in CODES else None


def resolve_report(report: Mapping[str, Any], errors: Mapping[str, ErrorSpec], effect: str) -> Fault:
    """Return the fault for a report; one outside the catalogue is the tool's bug. The fields are untrusted."""
    code = report["error"]
    if code not in errors or code not in REPORTABLE:
        return Fault(code="internal_error", reason="unknown_code", detail=f"reported {code!r}, not in its catalogue")
    spec = errors[code]
    reason = report.get("reason") if code == "denied" and report.get("reason") in HANDLER_DENIED_REASONS else None
    if code in (*UPSTREAM_ONLY, "rate_limited"):
        reason = "upstream"
    strict = spec.next or (
        "stop" if spec.retry is False and CODES[code].next_for(effect) in ("retry", "wait") else None
    )
    return Fault(
        code=code,
        reason=reason,
        hint=_text(report.get("hint")) or spec.hint,
        next=strict,
        path=_pointer(report),
        retry_after=_seconds(report.get("retry_after")),
        required_permission=_text(report.get("required_permission"))[:200] or None,
        **({"got": report["got"]} if "got" in report else {}),
    )


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(min(max(value, 0), LONGEST_RETRY_AFTER_S))


def _text(value: object) -> str:
    return value[:HINT_CHARACTERS] if isinstance(value, str) else ""


def _pointer(report: Mapping[str, Any]) -> str | None:
    path, field = report.get("path"), report.get("field")
    if isinstance(path, str) and (path == "" or path.startswith("/")):
        return path[:500]
    if isinstance(field, str) and field:
        return "/" + field[:100].replace("~", "~0").replace("/", "~1")
    return None

"""Normalise HTTP answers that a handler met (C29): one table from status to code. Standard library only.

raise from_http(response.status, response.headers)
"""

import math
import time
from collections.abc import Mapping
from typing import Any

from dispatcher.errors import LONGEST_RETRY_AFTER_S, ToolError

_BY_STATUS = {
    400: "invalid_args",
    422: "invalid_args",
    401: "denied",
    403: "denied",
    404: "not_found",
    409: "conflict",
    429: "rate_limited",
    408: "timeout",
    504: "timeout",
}
_HINTS = {
    "invalid_args": "The service refused the request as malformed",
    "denied": "The service refused access",
    "not_found": "The service has no such thing",
    "conflict": "The service says that it conflicts with the present state",
    "rate_limited": "The service asks to slow down",
    "timeout": "The service did not answer in time",
    "unavailable": "The service is not available now",
}


def from_http(status: int, headers: Mapping[str, Any] | None = None, *, now: float | None = None) -> ToolError:
    """Return the `ToolError` for an HTTP status of 400 or above; ValueError for any other.

    Retry-After is read as seconds or as an HTTP date (RFC 9110), relative to `now`, a Unix time; absurd values are cut.
    """
    if not 400 <= status <= 599:
        raise ValueError(f"status {status} is not an error")
    code = _BY_STATUS.get(status, "unavailable" if status >= 500 else "invalid_args")
    waits = code in ("rate_limited", "unavailable")
    return ToolError(code, f"{_HINTS[code]} (HTTP {status})", retry_after=_retry_after(headers, now) if waits else None)


def from_exception(error: BaseException) -> ToolError | None:
    """Return the `ToolError` for a client library's exception (by status, or a time-out), `None` if it is neither."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None) or getattr(error, "code", None) or getattr(error, "status", None)
    if isinstance(status, int) and 400 <= status <= 599:
        headers = getattr(response, "headers", None) or getattr(error, "headers", None)
        return from_http(status, headers)
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, TimeoutError) or any("Timeout" in name for name in names):
        return ToolError("timeout", _HINTS["timeout"])
    if isinstance(getattr(error, "reason", None), TimeoutError):
        return ToolError("timeout", _HINTS["timeout"])
    if isinstance(error, ConnectionError) or "ConnectError" in names or "URLError" in names:
        return ToolError("unavailable", _HINTS["unavailable"])
    return None


def _retry_after(headers: Mapping[str, Any] | None, now: float | None) -> float | None:
    found = [value for name, value in (headers or {}).items() if str(name).lower() == "retry-after"]
    if not found:
        return None
    text = str(found[0]).strip()[:64]
    try:
        seconds = float(text)
    except ValueError:
        seconds = _until_date(text, time.time() if now is None else now)
    if not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)


def _until_date(text: str, now: float) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return math.nan

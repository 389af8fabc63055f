"""The record: what people read of a call, one JSON line whatever is in it (C32)."""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from dispatcher.caps import clean

LOGGER = "dispatcher.calls"
_OUT_OF_SERVICE = ("preload", "no_sandbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """Hold everything worth knowing of one call, redacted. Times are seconds, sizes bytes; `time` is UTC, ISO 8601."""

    time: str
    correlation_id: str
    call_id: str | None
    tool: str
    code: str
    reason: str | None = None
    path: str | None = None
    queued_s: float = 0.0
    run_s: float = 0.0
    total_s: float = 0.0
    attempts: int = 1
    bytes_in: int = 0
    bytes_out: int = 0
    usage: dict[str, Any] = field(default_factory=dict)
    evidence: str = ""
    grant: str = ""
    tier: str = ""
    output: str = ""
    output_bytes: int = 0
    exception: str = ""
    traceback: str = ""
    progress: int = 0
    redacted: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self)

    def to_json_line(self) -> str:
        """Return one line of ASCII JSON: no control character, no line separator and no surrogate stands in it bare."""
        return json.dumps(clean(self.to_dict()), ensure_ascii=True, separators=(",", ":"))


Sink = Callable[[CallRecord], None]


def log_record(record: CallRecord) -> None:
    """Write a record to the logger `dispatcher.calls`, a tool's bug or a death as a warning: the default sink."""
    level = logging.WARNING if record.code == "internal_error" or record.reason in _OUT_OF_SERVICE else logging.INFO
    logging.getLogger(LOGGER).log(level, "%s", record.to_json_line())


def emit(record: CallRecord, sink: Sink) -> None:
    """Hand a record to its sink; a sink that raises never breaks a call, and is told of in the log."""
    try:
        sink(record)
    except Exception:
        logging.getLogger("dispatcher").exception("the record sink failed for %s", record.correlation_id)

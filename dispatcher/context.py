"""What a handler may know of its call: a parameter annotated `ToolContext` gets one, hidden from the model (C3)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def _drop(value: Any) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Hold a call's ids and its deadline, a monotonic instant of `time.monotonic()` in seconds.

    `idempotency_key` is to be handed on to whatever the tool calls.
    """

    call_id: str | None
    correlation_id: str
    deadline: float
    idempotency_key: str | None = None
    _send: Callable[[Any], None] = field(default=_drop, repr=False)

    def progress(self, value: Any) -> None:
        """Report progress: a JSON value of at most 1 KiB; more than 100 a second or 1,000 in all are dropped."""
        self._send(value)

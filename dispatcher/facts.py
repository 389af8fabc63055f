"""What rendering needs to know of a call and of its tool, and no more."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dispatcher.errors import ErrorSpec
from sandbox import Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Hold a call's times in seconds: waiting for a worker, running, and all from entry to answer."""

    queued_s: float = 0.0
    run_s: float = 0.0
    total_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """Hold what the host knows of one call."""

    name: str
    correlation_id: str
    call_id: str | None = None
    timing: Timing = Timing()
    attempts: int = 1
    receipt: Receipt | None = None
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """Hold what rendering may say of the tool."""

    name: str
    schema: Mapping[str, Any]
    effect: str = "write"
    errors: Mapping[str, ErrorSpec] = field(default_factory=dict)

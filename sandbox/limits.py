"""The budget of one call: every number that can end it.

Contract rule C37. A value is checked where it is written, so that a limit in force is always a number: no value means
"unlimited" (guarantee G10).
"""

import math
from dataclasses import dataclass, fields, replace

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
DAY_S = 86_400.0

# The range of each integer limit. The lower ends are what a bare worker needs to answer at all, the upper ends what no
# honest tool asks for: beyond them a number is a mistake (10**20, a byte count meant as MiB), not a wish.
INTEGER_RANGES: dict[str, tuple[int, int]] = {
    "memory_bytes": (1 * MIB, 1024 * GIB),
    "arguments_bytes": (2, 1 * GIB),
    "output_bytes": (1, 1 * GIB),
    "result_bytes": (2, 1 * GIB),
    "observation_bytes": (512, 1 * GIB),
    "open_files": (16, 65_536),
    "file_bytes": (1, 1024 * GIB),
    "processes": (1, 4_096),
}
SECOND_RANGES: dict[str, tuple[float, float]] = {
    "wall_s": (0.001, DAY_S),
    "cpu_s": (1, DAY_S + 1),
    "queue_s": (0.001, DAY_S),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Hold the limits of a call; sizes in bytes, times in seconds (C37).

    `wall_s` runs from the moment the job is sent to the answer's last byte; `queue_s` bounds the wait for a worker and
    is no part of it. `cpu_s=None` means `wall_s` rounded up plus one. `memory_bytes` is what the call may add to the
    worker it starts in. Out of range, negative, NaN, infinite or boolean values raise `ValueError` naming the field.
    """

    wall_s: float = 10.0
    cpu_s: int | None = None
    memory_bytes: int = 256 * MIB
    arguments_bytes: int = 64 * KIB
    output_bytes: int = 64 * KIB
    result_bytes: int = 1 * MIB
    observation_bytes: int = 16 * KIB
    open_files: int = 64
    file_bytes: int = 16 * MIB
    processes: int = 16
    queue_s: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name))

    @property
    def cpu_seconds(self) -> int:
        """Give the processor time in whole seconds, as RLIMIT_CPU counts it (setrlimit(2))."""
        return self.cpu_s if self.cpu_s is not None else math.ceil(self.wall_s) + 1

    def shortened(self, timeout_s: float | None) -> "Limits":
        """Return these limits with the wall clock cut to `timeout_s`: a call may only shorten (C37)."""
        if timeout_s is None:
            return self
        _check("timeout_s", timeout_s)
        return replace(self, wall_s=min(self.wall_s, float(timeout_s)))


def _check(name: str, value: object) -> None:
    if name == "cpu_s" and value is None:
        return
    if name in INTEGER_RANGES or name == "cpu_s":
        low, high = INTEGER_RANGES.get(name) or SECOND_RANGES[name]
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not low <= value <= high:  # type: ignore[operator]
            raise ValueError(f"limit {name!r} must be a whole number from {low:,} to {high:,}, not {_short(value)}")
        return
    low, high = SECOND_RANGES.get(name, SECOND_RANGES["wall_s"])
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high:  # type: ignore[operator]
        raise ValueError(f"limit {name!r} must be a number of seconds from {low:g} to {high:g}, not {_short(value)}")


def _short(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)[:40]

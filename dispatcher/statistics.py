"""Counts by (tool, code, reason): what a spike of `invalid_args` after a deployment shows in."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

UNREGISTERED = "(unregistered)"  # names that the model made up share one label, so that memory cannot grow


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Hold a frozen snapshot: calls answered by (tool, code, reason), and all of them."""

    calls: Mapping[tuple[str, str, str | None], int]
    total: int

    def by_code(self) -> dict[str, int]:
        """Return how many calls ended with each code."""
        counts: Counter[str] = Counter()
        for (_, code, _), number in self.calls.items():
            counts[code] += number
        return dict(counts)


class Counts:
    """Count calls; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, str | None]] = Counter()

    def add(self, tool: str | None, code: str, reason: str | None) -> None:
        """Count one call; `tool` is `None` for a name that is not registered."""
        with self._lock:
            self._counts[(tool or UNREGISTERED, code, reason)] += 1

    def snapshot(self) -> Statistics:
        """Return a frozen copy."""
        with self._lock:
            counts = dict(self._counts)
        return Statistics(calls=MappingProxyType(counts), total=sum(counts.values()))

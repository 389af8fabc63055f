"""The values that cross the sandbox's own boundary: what was seen, and what was in force."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.limits import Limits

DEFAULT_LIMITS = Limits()


class Verdict(enum.StrEnum):
    """Name how a job ended. Drawn by `sandbox.verdict` from evidence alone, never guessed from a signal (C27)."""

    OK = "ok"
    HANDLER_ERROR = "handler_error"  # the function raised; `failure` holds what it said
    BAD_RESULT = "bad_result"  # the result is not JSON; `failure.path` and `failure.hint` say where and why
    TIMEOUT = "timeout"  # killed at the wall-clock deadline
    CANCELLED = "cancelled"  # the caller gave up; killed
    MEMORY_LIMIT = "memory_limit"
    CPU_LIMIT = "cpu_limit"
    OUTPUT_LIMIT = "output_limit"
    RESULT_LIMIT = "result_limit"
    WORKER_CRASHED = "worker_crashed"  # died by a signal of its own making
    NO_RESULT = "no_result"  # ended without a reply
    PROTOCOL_VIOLATION = "protocol_violation"
    WORKER_LOST = "worker_lost"  # its zygote died under it
    OVERLOADED = "overloaded"  # never started: no worker free within queue_s
    NO_SANDBOX = "no_sandbox"  # never started: no worker could be made
    PRELOAD = "preload"  # never started: the function's module failed, hung or ended at import
    ISOLATION = "isolation"  # never started: the host is below the isolation this handler asks for


NEVER_STARTED = frozenset({Verdict.OVERLOADED, Verdict.NO_SANDBOX, Verdict.PRELOAD, Verdict.ISOLATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Hold what the worker said of its own failure: untrusted text, capped by the worker and by the frame budget."""

    type: str = ""
    message: str = ""
    traceback: str = ""
    path: str = ""  # JSON Pointer into the result, for bad_result
    hint: str = ""
    grant: str = ""  # the grant that would have let a refused operation through, e.g. "scratch=True"
    data: Any = None  # what an adapter adds


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Hold the head of what was printed (stdout and stderr in order) and how many bytes there were in all."""

    text: str = ""
    total_bytes: int = 0
    kept_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Hold what the call cost as the host saw it; `None` where the kernel was not asked or had no answer."""

    cpu_s: float | None = None
    peak_memory_bytes: int | None = None
    reply_bytes: int = 0
    job_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Say what confined this very call: read back by the worker or set by the parent, not copied from a wish."""

    tier: str = "none"  # A, B, C, D, E or "none"
    engine: str = ""  # "zygote", "exec" or "portable"
    layers: tuple[str, ...] = ()  # names of the confine steps that were in force
    missing: tuple[str, ...] = ()  # names of those that this host could not give
    landlock_abi: int = 0
    seccomp: str = ""  # first 16 hex digits of the SHA-256 of the filter program
    uid: int | None = None  # as the host sees it
    pid: int | None = None  # as the host sees it
    memory: str = "per-process rlimit"
    limits: Mapping[str, float] = field(default_factory=dict)  # in force, read back with prlimit(2)
    readable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Hold all that the host saw of one job.

    `value` is decoded, budgeted JSON and set only when `verdict` is OK. `queued_s` is the wait for a worker, `run_s`
    from the job's first byte to the end that decided it.
    """

    verdict: Verdict
    value: Any = None
    failure: Failure | None = None
    detail: str = ""  # evidence in words, for the record, e.g. "SIGSEGV", "killed at the deadline"
    output: Output = Output()
    usage: Usage = Usage()
    receipt: Receipt = Receipt()
    queued_s: float = 0.0
    run_s: float = 0.0
    progress: tuple[int, Any] = (0, None)  # frames seen, the last one
    limits: Limits = DEFAULT_LIMITS

    @property
    def ok(self) -> bool:
        """Ask whether the job answered."""
        return self.verdict is Verdict.OK

    @property
    def started(self) -> bool:
        """Ask whether the job was sent to a worker: if not, running it again cannot run it twice."""
        return self.verdict not in NEVER_STARTED

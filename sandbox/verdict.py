"""Draw the verdict: a pure function of the evidence (C27).

Precedence: the host's own kill reason > kernel memory evidence > protocol violation > signal > the worker's
MemoryError > handler error > ok. The worker may lower its own standing, never raise it.
"""

import signal
from dataclasses import dataclass

from sandbox.model import Verdict

# What a worker may say of itself, and the verdict it gets for it.
WORKER_FAILURES = {
    "error": Verdict.HANDLER_ERROR,
    "bad_result": Verdict.BAD_RESULT,
    "memory": Verdict.MEMORY_LIMIT,
    "result_limit": Verdict.RESULT_LIMIT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Hold what the host saw of one job.

    `killed` is the host's own reason for a kill. `exit_status` is as os.waitstatus_to_exitcode(): minus the signal's
    number, or the exit code; `None` while unknown. `reply` is "ok", a key of WORKER_FAILURES, or `None` without one.
    """

    killed: Verdict | None = None
    out_of_memory: bool = False
    violation: str = ""
    exit_status: int | None = None
    cpu_s: float | None = None
    cpu_limit_s: int | None = None
    reply: str | None = None
    zygote_lost: bool = False


def draw(evidence: Evidence) -> Verdict:
    """Return the one verdict that this evidence allows."""
    if evidence.killed is not None:
        return evidence.killed
    if evidence.out_of_memory:
        return Verdict.MEMORY_LIMIT
    if evidence.violation:
        return Verdict.PROTOCOL_VIOLATION
    if evidence.reply is not None:
        return WORKER_FAILURES.get(evidence.reply, Verdict.OK)
    return _draw_from_exit(evidence)


def _draw_from_exit(evidence: Evidence) -> Verdict:
    status = evidence.exit_status
    if status == -signal.SIGXCPU or (status == -signal.SIGKILL and _has_spent_cpu(evidence)):
        return Verdict.CPU_LIMIT
    if evidence.zygote_lost:  # the kernel ends every process of a pid namespace whose init has died
        return Verdict.WORKER_LOST
    if status is not None and status < 0:
        return Verdict.WORKER_CRASHED
    return Verdict.NO_RESULT


def _has_spent_cpu(evidence: Evidence) -> bool:
    # Past the hard limit the kernel sends SIGKILL (setrlimit(2)), which only the time spent tells from another's.
    return evidence.cpu_s is not None and evidence.cpu_limit_s is not None and evidence.cpu_s >= evidence.cpu_limit_s


def describe_exit(status: int | None) -> str:
    """Say in words how a process ended, for the record: "SIGSEGV", "exit code 3"."""
    if status is None:
        return "end not seen"
    if status < 0:
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    return f"exit code {status}"

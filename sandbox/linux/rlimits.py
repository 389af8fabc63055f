"""Resource limits (setrlimit(2), prlimit(2)): lowered from outside just before a job, and read back."""

import os
import resource

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
STACK_BYTES = 8 << 20
TASKS = 1_024
NAMES = {
    "memory_bytes": "RLIMIT_AS",
    "data_bytes": "RLIMIT_DATA",
    "cpu_s": "RLIMIT_CPU",
    "file_bytes": "RLIMIT_FSIZE",
    "open_files": "RLIMIT_NOFILE",
}


def open_statm() -> int:
    """Open what tells this process's memory, for a reader who will have no /proc."""
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


def baseline(statm: int | None = None) -> tuple[int, int]:
    """Return this process's address space and its data segment in bytes (proc(5), statm); closes a given `statm`."""
    descriptor = open_statm() if statm is None else statm
    with open(descriptor, "rb", buffering=0) as file:
        fields = (file.read() or b"").split()
    return int(fields[0]) * PAGE, int(fields[5]) * PAGE


def set_fixed() -> None:
    """Set what is the same for every worker: no core file, no locked memory, no message queues, a bounded stack."""
    zero = {"RLIMIT_CORE": 0, "RLIMIT_MSGQUEUE": 0, "RLIMIT_MEMLOCK": 64 * 1024, "RLIMIT_NICE": 0, "RLIMIT_RTPRIO": 0}
    for name, value in zero.items():
        _lower(name, value)
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft == resource.RLIM_INFINITY or soft > STACK_BYTES:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, hard))


def limit_tasks() -> None:
    """Bound what this uid's processes and threads may be in all, before this one may start no more (RLIMIT_NPROC).

    Counted for a uid within its user namespace: a zygote's workers share the bound, the zygote itself has a higher one.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = TASKS if hard == resource.RLIM_INFINITY else min(TASKS, hard // 2)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _lower(name: str, value: int) -> None:
    which = getattr(resource, name, None)
    if which is None:
        return
    _, hard = resource.getrlimit(which)
    if hard == resource.RLIM_INFINITY or hard > value:
        resource.setrlimit(which, (value, value))


def lower_for(pid: int, wanted: dict[str, int], cpu_s: int) -> dict[str, float]:
    """Lower the limits of process `pid` (0: ourselves), soft and hard, and return what the kernel says is in force.

    The soft CPU limit stands one second under the hard one, so that SIGXCPU tells it from other deaths. Raises OSError.
    """
    in_force: dict[str, float] = {}
    for key, value in (*wanted.items(), ("cpu_s", cpu_s)):
        which = getattr(resource, NAMES[key])
        _set(pid, which, value, value + 1 if key == "cpu_s" else value)
        in_force[key] = _get(pid, which)
    return in_force


def lower_own(wanted: dict[str, int], cpu_s: int) -> None:
    """Lower this process's limits as far as this system knows them: macOS refuses some."""
    for key, value in (*wanted.items(), ("cpu_s", cpu_s)):
        which = getattr(resource, NAMES[key], None)
        if which is None:
            continue
        try:
            _set(0, which, value, value + 1 if key == "cpu_s" else value)
        except (OSError, ValueError):
            continue


def _set(pid: int, which: int, soft: int, hard: int) -> None:
    _, ceiling = _limits(pid, which)
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    if hasattr(resource, "prlimit"):
        resource.prlimit(pid, which, (soft, hard))
    else:
        resource.setrlimit(which, (soft, hard))


def _get(pid: int, which: int) -> int:
    return _limits(pid, which)[0]


def _limits(pid: int, which: int) -> tuple[int, int]:
    return resource.prlimit(pid, which) if hasattr(resource, "prlimit") else resource.getrlimit(which)

"""pidfd: a descriptor that is a process, so that a kill never meets a stranger (pidfd_open(2), pidfd_send_signal(2))."""

import os
import select
import signal


def open_pidfd(pid: int) -> int:
    """Return a descriptor for `pid`; it becomes readable when the process has ended."""
    return os.pidfd_open(pid, 0)


def kill(pidfd: int) -> None:
    """Send SIGKILL; a process that has already ended is no error."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return


def is_dead(pidfd: int) -> bool:
    """Ask whether the process has ended (its zombie may wait for its parent)."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(0))


def pid_of(pidfd: int) -> int:
    """Return the process's pid in our own pid namespace, -1 once it is reaped (proc(5), fdinfo)."""
    with open(f"/proc/self/fdinfo/{pidfd}", "rb") as file:
        for line in file:
            if line.startswith(b"Pid:"):
                return int(line[4:])
    return -1

"""A worker as the host holds it: three descriptors, a pid, and in the end a status."""

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from sandbox.launcher import ZygoteProcess
from sandbox.limits import Limits
from sandbox.linux import pidfd as pidfds
from sandbox.linux import rlimits
from sandbox.model import Receipt

End = tuple[int | None, float | None, int | None]  # exit status, processor seconds, peak bytes
UNKNOWN_END: End = (None, None, None)


class Worker:
    """Hold one single-use worker. Its descriptors are closed by `release`, its pidfd once it is dead as well."""

    def __init__(
        self,
        parent: ZygoteProcess,
        descriptors: list[int],
        zygote_pid: int,
        receipt: Receipt,
        baseline: tuple[int, int],
    ) -> None:
        self.parent = parent
        self.socket = socket.socket(fileno=descriptors[0])
        self.output_fd = descriptors[1]
        self.exit_fd = descriptors[2]
        self.zygote_pid = zygote_pid
        self.pid = self._find_pid()
        self.receipt = receipt
        self.baseline = baseline
        self.lost = False
        self.out_of_memory = False
        self.is_dead = False
        self._is_released = False
        self._lock = threading.RLock()  # of the same thread: a forgotten lease may be found dead in the midst of it
        self._end: End | None = None
        self._on_end: list[Callable[[], None]] = []
        self.socket.setblocking(False)
        os.set_blocking(self.output_fd, False)

    def _find_pid(self) -> int:
        return pidfds.pid_of(self.exit_fd)

    def wanted_limits(self, limits: Limits) -> dict[str, int]:
        """Return the resource limits that a call's limits mean for this process."""
        space, data = self.baseline
        return {
            "memory_bytes": space + limits.memory_bytes,
            "data_bytes": data + limits.memory_bytes,
            "file_bytes": limits.file_bytes,
            "open_files": limits.open_files,
        }

    def lower_limits(self, limits: Limits) -> dict[str, float]:
        """Put the call's limits in force and return them as the kernel has them; OSError if the worker is gone."""
        in_force = rlimits.lower_for(self.pid, self.wanted_limits(limits), limits.cpu_seconds)
        if pidfds.is_dead(self.exit_fd):
            raise ProcessLookupError(3, "the worker ended on the shelf")
        return in_force

    def own_limits(self, limits: Limits) -> dict[str, int] | None:
        """Return the limits that the worker has to put in force itself: none, where the host can."""
        return None

    def kill(self) -> None:
        """Send SIGKILL through the pidfd; a worker that is dead is no error."""
        with self._lock:
            if not self.is_dead:
                self._send_kill()

    def _send_kill(self) -> None:
        pidfds.kill(self.exit_fd)

    def is_running(self) -> bool:
        """Ask whether the process itself has not ended, whatever is under it."""
        return not pidfds.is_dead(self.exit_fd)

    def cpu_seconds(self) -> float | None:
        """Return the processor time spent so far, by the process's own clock; `None` once it is reaped."""
        try:
            return time.clock_gettime(~self.pid << 3 | 2)  # MAKE_PROCESS_CPUCLOCK, linux/posix-timers.h
        except OSError:
            return None

    @property
    def end(self) -> End:
        """Give how it ended, as far as is known."""
        return self._end or UNKNOWN_END

    def set_end(self, end: End) -> None:
        """Take notice of the zygote's report; wakes whoever waits for it."""
        with self._lock:
            self._end = end
            waiting, self._on_end = self._on_end, []
        for callback in waiting:
            callback()

    def lose(self) -> None:
        """Take notice that its zygote is gone: unless its end is known already, nobody will report it."""
        if self._end is None:
            self.lost = True
            self.set_end(UNKNOWN_END)

    def call_at_end(self, callback: Callable[[], None]) -> None:
        """Call `callback`, from any thread, once the end is known."""
        with self._lock:
            if self._end is None:
                self._on_end.append(callback)
                return
        callback()

    def wait_end(self, timeout_s: float) -> None:
        """Wait until the end is known, at most `timeout_s`."""
        known = threading.Event()
        self.call_at_end(known.set)
        known.wait(timeout_s)

    def release(self) -> None:
        """Close what the call used; the slot is freed by its death, not by this."""
        with self._lock:
            if self._is_released:
                return
            self._is_released = True
            self.socket.close()
            os.close(self.output_fd)
            if self.is_dead:
                os.close(self.exit_fd)

    def abandon(self) -> None:
        """In a forked copy of the host: close our copies of the descriptors."""
        self._lock = threading.RLock()  # whoever held it lives in the original
        self.is_dead = True
        self.release()

    def mark_dead(self) -> None:
        """Take notice that the process is gone."""
        with self._lock:
            if self.is_dead:
                return
            self.is_dead = True
            if self._is_released:
                os.close(self.exit_fd)


class Lease:
    """Hold a worker that is out. If nobody is left to hold it, the worker is killed and its slot is free again."""

    __slots__ = ("__weakref__", "is_over", "worker")

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.is_over = False

    def __del__(self) -> None:
        """Kill what has been forgotten: an exception struck between two steps of whoever held it."""
        if not self.is_over:
            self.give_up()

    def give_up(self) -> None:
        """Kill the worker and close what the call used."""
        self.worker.kill()
        self.worker.release()
        self.is_over = True


class Refusal(Exception):
    """Say why no worker could be had; `verdict` is one of those that never started."""

    def __init__(self, verdict: Any, detail: str) -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.detail = detail

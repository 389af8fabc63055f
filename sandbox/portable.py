"""The portable engine, host side: workers spawned by a nursery with `multiprocess`, watched with psutil.

For hosts without the kernel means of the zygote engine (macOS), and selectable everywhere by name. It builds no walls:
what it gives is a separate process with resource limits, and it says so (tier D, on macOS E). See `sandbox.nursery`
for the processes and messages.
"""

import json
import os
import platform
import resource
import socket
import sys
from typing import Any

from sandbox.launcher import ZygoteProcess
from sandbox.limits import Limits
from sandbox.probing import LOST, Probe
from sandbox.shelf import Means
from sandbox.spare import Worker
from sandbox.stream import Stream

_NURSERY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nursery.py")
# prlimit(2) is Linux only; elsewhere a worker lowers its own limits before it calls the handler.
HAS_PRLIMIT = hasattr(resource, "prlimit")


def portable_probe() -> Probe:
    """Return what the portable engine gives, whatever the host could: no walls."""
    tier = "E" if sys.platform == "darwin" else "D"
    missing = dict.fromkeys(LOST, "the portable engine builds no walls")
    return Probe(tier=tier, kernel=platform.release(), missing=missing)


class NurseryProcess(ZygoteProcess):
    """Hold a started nursery, with the same surface as a zygote."""

    script = _NURSERY

    def _make_control(self) -> tuple[socket.socket, socket.socket]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._stream = Stream(ours)
        return ours, theirs

    def send(self, **order: Any) -> None:
        """Send an order; a nursery that is gone is noticed elsewhere."""
        try:
            self._stream.send(json.dumps(order).encode())
        except OSError:
            return

    def request_workers(self, count: int) -> None:
        """Ask for `count` workers."""
        self.send(fork=count)

    def discard(self, pid: int) -> None:
        """Have a worker killed that could not be taken in: the nursery holds its ends too."""
        self.send(kill=pid)

    def receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """Return the next message and its descriptors, `None` when the nursery has hung up."""
        try:
            received = self._stream.receive()
        except OSError:
            return None
        return received and (json.loads(received[0]), received[1])


class PortableWorker(Worker):
    """Hold a worker whose end is told by the end of a pipe, and which its nursery kills with everything under it."""

    parent: NurseryProcess

    def _find_pid(self) -> int:
        return self.zygote_pid

    def lower_limits(self, limits: Limits) -> dict[str, float]:
        """Put the call's limits in force, have its memory watched, and return what the kernel says is in force.

        Where there is no prlimit(2) nothing can be read back: the worker is told by its job (`own_limits`).
        """
        self.parent.send(watch=[self.zygote_pid, limits.memory_bytes])
        return super().lower_limits(limits) if HAS_PRLIMIT else {}

    def own_limits(self, limits: Limits) -> dict[str, int] | None:
        """Return the limits that the worker has to put in force itself."""
        return None if HAS_PRLIMIT else self.wanted_limits(limits) | {"cpu_s": limits.cpu_seconds}

    def _send_kill(self) -> None:
        self.parent.send(kill=self.zygote_pid)

    def is_running(self) -> bool:
        """Ask whether the process itself has not ended: the exit pipe tells only once everything under it is gone."""
        import psutil

        try:
            return bool(psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False
        except OSError:  # no descriptor is left to look with
            return True

    def cpu_seconds(self) -> float | None:
        """Return the processor time spent so far; `None` once it is reaped."""
        import psutil

        try:
            times = psutil.Process(self.pid).cpu_times()
        except (psutil.Error, OSError):
            return None
        return float(times.user + times.system)


PORTABLE = Means(
    name="portable",
    process=NurseryProcess,
    worker=PortableWorker,
    memory="per-process rlimit; the tree is sampled",
    makes_first=True,
)

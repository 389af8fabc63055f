"""The sandbox: run a function in a fresh, confined, single-use process and see how it ended."""

import asyncio
import atexit
import json
import os
import queue
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox import drive, probing, wire
from sandbox.engine import Engine
from sandbox.errors import SandboxUnavailable
from sandbox.handlers import Handler
from sandbox.limits import Limits
from sandbox.line import Waiter
from sandbox.model import Outcome, Verdict
from sandbox.shelf import ZYGOTE, Means
from sandbox.spare import Lease, Refusal, Worker
from sandbox.supervise import Supervision

SPARES = 4
_TRIES = 4  # a spare may be found dead when it is taken; another takes its place
_open: "weakref.WeakSet[Sandbox]" = weakref.WeakSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxStatistics:
    """Hold a snapshot: what is there now, and what happened since the start."""

    tier: str
    engine: str
    busy: int
    spares: int
    waiting: int
    zygotes: int
    jobs: int
    forks: int
    zygote_starts: int
    zygotes_lost: int
    verdicts: Mapping[str, int] = field(default_factory=dict)


class Sandbox:
    """Run functions in disposable processes; thread-safe, usable from any thread and any event loop.

    `isolation` is the weakest tier accepted (A to E, or "none"); below it the constructor raises `SandboxUnavailable`.
    `engine` is "zygote", "portable" (no walls: tier D, on macOS E) or "auto": the zygote wherever it can run.
    `max_workers` bounds the jobs that run at once, `spares` the workers that wait ready in each group, `preload_s` the
    import of a group's handlers. Leaving the `with` block, `close()` or the interpreter's exit ends every process.
    """

    def __init__(
        self,
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        isolation: str = probing.DEFAULT_ISOLATION,
        engine: str = "auto",
        max_workers: int | None = None,
        spares: int | str = "auto",
        preload: Sequence[str] = (),
        preload_s: float = 10.0,
    ) -> None:
        self.limits = limits
        means, self.probe = _choose(isolation, engine)
        workers = _positive("max_workers", max_workers, max(8, 4 * (os.cpu_count() or 1)))
        ready = _positive("spares", None if spares == "auto" else spares, SPARES)
        if isinstance(preload, str):
            raise TypeError("preload must be a sequence of module names, not one string")
        self._engine = Engine(
            means, self.probe, max_workers=workers, spares=ready, preload=preload, preload_s=preload_s
        )
        self.max_workers = workers
        self._verdicts: dict[str, int] = {}
        _open.add(self)
        weakref.finalize(self, self._engine.close)

    def add(self, *handlers: Handler) -> None:
        """Announce handlers: their processes start loading them now, not at the first call."""
        self._engine.add(handlers)

    def run(
        self,
        function: "Callable[..., Any] | str | Handler",
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        timeout_s: float | None = None,
        context: Mapping[str, Any] | None = None,
        pickled: bytes = b"",
        until: float | None = None,
    ) -> Outcome:
        """Call `function(**arguments)` in a worker and return the outcome, whatever happens in there.

        `arguments` must be JSON values; `pickled` carries others instead. `until`, a monotonic instant, ends both the
        wait for a worker and the run. At the deadline the worker is killed and the
        verdict is `timeout`. Raises `SandboxClosed` after `close`, `HandlerUnusable` for a function that cannot travel,
        `ValueError` for limits out of range; KeyboardInterrupt passes on after the kill.
        """
        call = _Call(self, function, arguments, limits, timeout_s, context, pickled, until)
        for _ in range(_TRIES):
            try:
                session = call.open(self._wait_worker(call))
            except Refusal as refusal:
                return self._count(call.refused(refusal))
            if session is not None:
                return self._count(call.finish(drive.run_blocking(session)))
        return self._count(call.refused(Refusal(Verdict.NO_SANDBOX, "workers end before they can be used")))

    async def run_async(
        self,
        function: "Callable[..., Any] | str | Handler",
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        timeout_s: float | None = None,
        context: Mapping[str, Any] | None = None,
        pickled: bytes = b"",
        until: float | None = None,
    ) -> Outcome:
        """Do what `run` does on the running event loop, without a thread; cancelling kills the worker."""
        call = _Call(self, function, arguments, limits, timeout_s, context, pickled, until)
        for _ in range(_TRIES):
            try:
                session = call.open(await self._await_worker(call))
            except Refusal as refusal:
                return self._count(call.refused(refusal))
            if session is not None:
                return self._count(call.finish(await drive.run_async(session)))
        return self._count(call.refused(Refusal(Verdict.NO_SANDBOX, "workers end before they can be used")))

    def _wait_worker(self, call: "_Call") -> Lease:
        arrived: list[Lease | Refusal] = []  # kept apart from the queue: an interrupted wait never loses a worker
        bell: queue.SimpleQueue[None] = queue.SimpleQueue()

        def deliver(what: Lease | Refusal) -> None:
            arrived.append(what)
            bell.put(None)

        taken = self._engine.take(call.handler, deliver)
        if isinstance(taken, Lease):
            return taken
        try:
            while not arrived:
                with suppress(queue.Empty):
                    bell.get(timeout=self._patience(call))
                if not arrived and not self._may_wait_on(taken, call) and self._engine.leave_line(taken):
                    arrived.append(_no_worker_free())
        except BaseException:
            if not self._engine.leave_line(taken) and arrived:
                self._give_back(arrived[0])
            raise
        return _lease_of(arrived[0])

    async def _await_worker(self, call: "_Call") -> Lease:
        loop = asyncio.get_running_loop()
        delivered: asyncio.Future[Lease | Refusal] = loop.create_future()
        late: list[Lease | Refusal] = []

        def arrive() -> None:
            if delivered.cancelled():
                self._give_back(late[0])
            elif not delivered.done():
                delivered.set_result(late[0])

        def deliver(what: Lease | Refusal) -> None:
            late.append(what)
            try:
                loop.call_soon_threadsafe(arrive)
            except RuntimeError:  # the loop was closed with the task still waiting
                self._give_back(what)

        taken = self._engine.take(call.handler, deliver)
        if isinstance(taken, Lease):
            return taken
        try:
            while not delivered.done():
                await asyncio.wait({delivered}, timeout=self._patience(call))
                if not delivered.done() and not self._may_wait_on(taken, call):
                    if self._engine.leave_line(taken):
                        raise _no_worker_free()
                    await delivered  # it is on its way
        except asyncio.CancelledError:
            self._engine.leave_line(taken)
            if delivered.done() and not delivered.cancelled():
                self._give_back(delivered.result())
            delivered.cancel()
            raise
        return _lease_of(delivered.result())

    def _patience(self, call: "_Call") -> float:
        patience = call.limits.queue_s
        return patience if call.until is None else max(0.0, min(patience, call.until - time.monotonic()))

    def _may_wait_on(self, waiter: Waiter, call: "_Call") -> bool:
        """Ask whether a wait that has run out goes on: a zygote's start has its own bound and is no queue."""
        out_of_time = call.until is not None and time.monotonic() >= call.until
        return not out_of_time and self._engine.is_loading(waiter)

    def _give_back(self, what: "Lease | Refusal") -> None:
        if isinstance(what, Lease):
            self._engine.put_back(what)

    def _count(self, outcome: Outcome) -> Outcome:
        name = outcome.verdict.value
        self._verdicts[name] = self._verdicts.get(name, 0) + 1
        return outcome

    def statistics(self) -> SandboxStatistics:
        """Return a snapshot."""
        counts = self._engine.counts
        return SandboxStatistics(
            tier=self.probe.tier,
            engine=self._engine.means.name,
            jobs=counts.calls,
            forks=counts.forks,
            zygote_starts=counts.zygote_starts,
            zygotes_lost=counts.zygotes_lost,
            verdicts=dict(self._verdicts),
            **self._engine.statistics(),
        )

    def close(self) -> None:
        """End every process; jobs in flight answer `worker_lost`. May be called twice."""
        self._engine.close()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> "Sandbox":
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)


class _Call:
    """Hold one call on its way: the handler, the limits, the job's bytes, the clock."""

    def __init__(
        self,
        box: Sandbox,
        function: "Callable[..., Any] | str | Handler",
        arguments: Mapping[str, Any] | None,
        limits: Limits | None,
        timeout_s: float | None,
        context: Mapping[str, Any] | None,
        pickled: bytes,
        until: float | None,
    ) -> None:
        if arguments is not None and not isinstance(arguments, Mapping):
            raise TypeError(f"arguments must map names to values, not be {type(arguments).__name__}")
        if limits is not None and not isinstance(limits, Limits):
            raise TypeError(f"limits must be Limits(...), not {type(limits).__name__}")
        self.handler = Handler.of(function)
        self.limits = (limits or box.limits).shortened(timeout_s)
        self.arrived = time.monotonic()
        self.until = until
        self._pickled = pickled
        self._in_force: dict[str, float] = {}
        self._worker: Worker | None = None
        self._queued_s = 0.0
        self._order = {
            "handler": self.handler.key,
            "arguments": {} if pickled else dict(arguments or {}),
            "context": dict(context or {}),
            "wall_s": self.limits.wall_s,
            "result_bytes": self.limits.result_bytes,
        }
        if self.handler.kind == "import":
            self._order["spec"] = {
                "module": self.handler.module,
                "qualname": self.handler.qualname,
                "adapter": self.handler.adapter,
            }
        if pickled:
            self._order["pickled"] = True

    def open(self, lease: Lease) -> drive.Session | None:
        """Put the limits in force and begin; `None` if the worker turns out to be dead."""
        worker = lease.worker
        try:
            self._in_force = worker.lower_limits(self.limits)
        except OSError:
            lease.give_up()
            return None
        self._worker = worker
        own_limits = worker.own_limits(self.limits)
        if own_limits is not None:
            self._order["limits"] = own_limits
        job = wire.frame(wire.JOB, json.dumps(self._order, ensure_ascii=False).encode())
        if self._pickled:
            job += wire.frame(wire.VALUE, self._pickled)
        started = time.monotonic()
        self._queued_s = started - self.arrived
        return drive.Session(lease, Supervision(self.limits, started, self.until), job)

    def finish(self, outcome: Outcome) -> Outcome:
        """Add the receipt and the queue time."""
        worker = self._worker
        assert worker is not None
        receipt = replace(worker.receipt, pid=worker.pid, limits=self._in_force)
        return replace(outcome, receipt=receipt, queued_s=self._queued_s)

    def refused(self, refusal: Refusal) -> Outcome:
        """Return the outcome of a job that never started."""
        waited = time.monotonic() - self.arrived
        return Outcome(verdict=refusal.verdict, detail=refusal.detail, queued_s=waited, limits=self.limits)


def _no_worker_free() -> Refusal:
    return Refusal(Verdict.OVERLOADED, "no worker was free in time")


def _lease_of(what: "Lease | Refusal") -> Lease:
    if isinstance(what, Refusal):
        raise what
    return what


def _positive(name: str, value: object, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000:
        raise ValueError(f"{name} must be a whole number from 1 to 10000, not {value!r:.40}")
    return value


def _choose(isolation: str, engine: str) -> tuple[Means, probing.Probe]:
    """Return the engine's means and what it gives on this host; below the minimum nothing starts."""
    if isolation not in probing.TIERS:
        raise ValueError(f"isolation must be one of {', '.join(probing.TIERS)}, not {isolation!r:.40}")
    if engine not in ("auto", "zygote", "portable"):
        raise ValueError(f"engine must be 'auto', 'zygote' or 'portable', not {engine!r:.40}")
    found = probing.probe()
    is_portable = engine == "portable" or (engine == "auto" and sys.platform != "linux")
    if is_portable:
        from sandbox import portable

        means, found = portable.PORTABLE, portable.portable_probe()
    elif not found.has("pidfd"):
        raise SandboxUnavailable(f"the zygote engine cannot run: {found.missing['pidfd']}", found.report())
    else:
        means = ZYGOTE
    if not probing.at_least(found.tier, isolation):
        raise SandboxUnavailable(
            f"{'the portable engine' if is_portable else 'this host'} gives tier {found.tier}, below the minimum "
            f"{isolation!r}: " + "; ".join(f"no {name} ({why})" for name, why in found.missing.items()),
            found.report(),
        )
    return means, found


@atexit.register
def _close_all() -> None:
    for box in list(_open):
        box.close()


def _abandon_all() -> None:
    _held.clear()
    for box in list(_open):
        box._engine.abandon()


def _hold_all() -> None:
    """Let no keeper be in the midst of starting a process, whose descriptors a forked copy would keep open."""
    _held.extend(box._engine for box in list(_open))
    for engine in _held:
        engine.hold()


def _let_go() -> None:
    while _held:
        _held.pop().let_go()


_held: list[Engine] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_all, after_in_parent=_let_go, after_in_child=_abandon_all)


def encode_pickled(values: Mapping[str, Any], handler: Handler) -> bytes:
    """Pickle arguments that are not JSON, by value, for the way from host to the worker of `handler`."""
    from sandbox.by_value import dumps

    return dumps(dict(values), handler.classes).data

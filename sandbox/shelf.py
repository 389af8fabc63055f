"""One group's shelf: its handlers, its zygotes, its spares. No thread and no lock of its own: the engine holds one."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.confine import Plan
from sandbox.handlers import Handler
from sandbox.launcher import ZygoteProcess
from sandbox.model import Receipt
from sandbox.spare import Lease, Worker

RENEW_FORKS = 10_000
RENEW_S = 900.0
MOST_BROKEN_STARTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Say how an engine makes its processes: the zygote's and the worker's class, and what receipts call them."""

    name: str
    process: type[ZygoteProcess]
    worker: Callable[..., Worker]
    memory: str
    makes_first: bool  # whether the first worker comes without being asked for


ZYGOTE = Means(name="zygote", process=ZygoteProcess, worker=Worker, memory="per-process rlimit", makes_first=False)


class Zygote:
    """Hold one zygote with what it has told us and the workers it has made."""

    def __init__(
        self, means: Means, handlers: Sequence[Handler], plan: Plan, preload: Sequence[str], *, single: bool
    ) -> None:
        self.means = means
        self.handlers = {handler.key for handler in handlers}
        self.modules = {(h.module, h.origin, h.adapter) for h in handlers if h.kind == "import"}
        self.plan = plan
        self.single = single
        self.process = means.process(handlers, plan, preload, single=single)
        self.started = time.monotonic()
        self.loading = ""
        self.ready: dict[str, Any] | None = None
        self.problem = ""
        self.workers: dict[int, Worker] = {}  # by pid in the zygote's namespace
        self.pending = 1 if single or means.makes_first else 0
        self.stillborn = 0
        self.forks = 0

    def make_worker(self, message: dict[str, Any], descriptors: list[int]) -> Worker:
        """Take in a worker that the zygote has sent."""
        ready = self.ready or {}
        pid: int = message["worker"]
        receipt = Receipt(
            tier=self.plan.tier,
            engine="exec" if self.single else self.means.name,
            layers=tuple(ready.get("layers", ())),
            missing=tuple(ready.get("missing", ())),
            landlock_abi=self.plan.landlock_abi,
            seccomp=str(ready.get("seccomp", "")),
            uid=ready.get("uid"),
            memory=self.means.memory,
            readable=self.plan.readable,
        )
        space, data = message.get("baseline") or ready["baseline"]
        worker = self.means.worker(self.process, descriptors, pid, receipt, (space, data))
        self.workers[pid] = worker
        self.pending = max(0, self.pending - 1)
        self.forks += 1
        return worker

    def has(self, handler: Handler) -> bool:
        """Ask whether its workers can run `handler`: it, or its module, was loaded."""
        return handler.key in self.handlers or (handler.module, handler.origin, handler.adapter) in self.modules

    def forget(self, handler: Handler) -> None:
        """Take notice that a handler could not be loaded."""
        self.handlers.discard(handler.key)
        self.modules.discard((handler.module, handler.origin, handler.adapter))

    def request(self, count: int) -> None:
        """Ask for `count` more workers."""
        self.process.request_workers(count)
        self.pending += count  # afterwards: if an interruption comes between, there is a spare too many, never too few

    @property
    def is_worn(self) -> bool:
        """Ask whether it is time for another: every fork shares this one's address layout."""
        return self.forks >= RENEW_FORKS or time.monotonic() - self.started > RENEW_S


class Shelf:
    """Hold the spares of handlers that may share a zygote, and why some of them cannot be used."""

    def __init__(
        self, means: Means, plan: Plan, preload: Sequence[str], *, single: bool = False, is_passing: bool = False
    ) -> None:
        self.means = means
        self.plan = plan
        self.preload = tuple(preload)
        self.single = single
        self.is_passing = is_passing
        self.handlers: dict[str, Handler] = {}
        self.failures: dict[str, str] = {}
        self.threaded: set[str] = set()
        self.spares: deque[Worker] = deque()
        self.current: Zygote | None = None
        self.extra: list[Zygote] = []  # in single mode, further ones; else those being replaced
        self.broken_starts = 0
        self.broken_at = 0.0
        self.last_problem = ""
        self.last_used = time.monotonic()
        self.wanted = 0  # zygotes that are still to be started

    def add(self, handlers: Iterable[Handler]) -> None:
        """Take in handlers; a zygote that has not loaded them is replaced at the next call of one."""
        for handler in handlers:
            self.handlers.setdefault(handler.key, handler)

    def mark_broken(self, problem: str) -> None:
        """Take notice that a zygote could not start, for a reason that is no handler's."""
        self.broken_starts += 1
        self.broken_at = time.monotonic()
        self.last_problem = problem

    def usable(self) -> list[Handler]:
        """Return the handlers that a new zygote should load."""
        return [
            handler for key, handler in self.handlers.items() if key not in self.failures and key not in self.threaded
        ]

    def start(self) -> Zygote:
        """Start a zygote with every usable handler and make it the current one; OSError if that fails."""
        zygote = Zygote(self.means, self.usable(), self.plan, self.preload, single=self.single)
        if self.current is not None:
            self.extra.append(self.current)
        self.current = zygote
        return zygote

    @property
    def zygotes(self) -> list[Zygote]:
        """Give all that live."""
        return [*self.extra, *([self.current] if self.current is not None else [])]

    @property
    def is_loading(self) -> bool:
        """Ask whether the current zygote is not ready yet."""
        return self.wanted > 0 or self.current is None or self.current.ready is None

    def pop(self, handler: Handler) -> Lease | None:
        """Take a spare that has loaded `handler` and lives."""
        for worker in list(self.spares):
            if worker.is_dead or self._has_loaded(worker, handler):
                lease = Lease(worker)  # from here on it is never lost
                self.spares.remove(worker)
                if not worker.is_dead:
                    return lease
        return None

    def _has_loaded(self, worker: Worker, handler: Handler) -> bool:
        return any(worker.zygote_pid in z.workers and z.workers[worker.zygote_pid] is worker and z.has(handler)
                   for z in self.zygotes)  # fmt: skip

    def restock(self, target: int, waiting: int) -> None:
        """Ask the current zygote for what is missing to `target` spares and one for every waiter."""
        zygote = self.current
        if zygote is None or zygote.ready is None or self.single:
            return
        missing = target + waiting - len(self.spares) - zygote.pending
        if missing > 0:
            zygote.request(missing)

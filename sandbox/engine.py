"""The engine: shelves, the line of waiters, and what is done when zygotes and workers come and go.

Processes: this host; for every group of handlers a guardian with its zygote (or a nursery); their workers. Callers take
a worker under the lock or wait in line; the keeper's thread does everything else: it starts and ends zygotes, takes in
new workers, reports of ends and deaths, and hands out freed slots. An exception that a signal's handler raises in the
midst of a caller's part loses nothing: a worker is out only as long as its lease lives.
"""

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.errors import SandboxClosed
from sandbox.handlers import Handler
from sandbox.keeper import Keeper
from sandbox.line import Line, Waiter
from sandbox.model import Verdict
from sandbox.probing import Probe, plan_for
from sandbox.shelf import MOST_BROKEN_STARTS, Means, Shelf, Zygote
from sandbox.spare import Lease, Refusal, Worker
from sandbox.verdict import describe_exit

EAGER_ZYGOTES = 4
MOST_SHELVES = 32
MOST_PASSING = 4  # of these, for handlers by value that nobody announced: each is used once or twice
PASSING = "passing"
MOST_STILLBORN = 8
REST_S = 1.0  # after zygotes that broke at their start, this long before the next is tried


@dataclass(slots=True)
class Counts:
    """Count what happened since the start."""

    calls: int = 0
    forks: int = 0
    zygote_starts: int = 0
    zygotes_lost: int = 0


class Engine:
    """Give workers to callers; thread-safe. `close` ends every process it started."""

    def __init__(
        self,
        means: Means,
        found: Probe,
        *,
        max_workers: int,
        spares: int,
        preload: Sequence[str] = (),
        preload_s: float = 10.0,
    ) -> None:
        self.max_workers = max_workers
        self.means = means
        self.counts = Counts()
        self._found = found
        self._spares = spares
        self._preload = tuple(preload)
        self._preload_s = preload_s
        self._handlers: dict[str, Handler] = {}
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._shelves: dict[tuple[object, ...], Shelf] = {}
        self._line = Line()
        self._is_closed = False
        self._keeper = Keeper(self._lock, self._tend, self._end_all)
        self._zygotes: dict[Zygote, Shelf] = {}
        self._workers: dict[Worker, tuple[Shelf, Zygote]] = {}
        self._taken: dict[Worker, weakref.ref[Lease]] = {}
        self._unwanted: list[Zygote] = []

    # -- callers -------------------------------------------------------------------------------------------------

    def add(self, handlers: Sequence[Handler]) -> None:
        """Announce handlers, so that their zygotes load them before the first call."""
        with self._lock:
            self._check_open()
            touched = []
            for handler in handlers:
                shelf = self._shelf_of(handler, announced=True)
                shelf.add([handler])
                if shelf not in touched:
                    touched.append(shelf)
            for shelf in touched[:EAGER_ZYGOTES]:
                if shelf.current is None:
                    self._want(shelf)

    def take(self, handler: Handler, deliver: Callable[["Lease | Refusal"], None]) -> Waiter | Lease:
        """Return the lease of a worker that has loaded `handler`, or the waiter that stands in line for one.

        Raises `Refusal` when the handler can never run, `SandboxClosed` after `close`.
        """
        with self._lock:
            self._check_open()
            shelf = self._shelf_of(handler, announced=False)
            shelf.add([handler])
            shelf.last_used = time.monotonic()
            shelf = self._prepare(shelf, handler)
            if len(self._taken) < self.max_workers and not self._line:
                lease = self._lease(shelf, handler)
                if lease is not None:
                    self._restock(shelf)
                    return lease
            waiter = Waiter(shelf, handler, deliver)
            self._line.join(waiter)
            self._keeper.wake()
            self._restock(shelf)
            return waiter

    def is_loading(self, waiter: Waiter) -> bool:
        """Ask whether what the waiter waits for is a zygote's start, not a free slot."""
        with self._lock:
            return waiter.shelf.is_loading

    def leave_line(self, waiter: Waiter) -> bool:
        """Give up waiting; return whether that was in time (else something was delivered)."""
        with self._lock:
            return self._line.leave(waiter)

    def put_back(self, lease: Lease) -> None:
        """Return a worker that was never given a job."""
        with self._lock:
            worker = lease.worker
            entry = self._workers.get(worker)
            if worker in self._taken and entry is not None and not worker.is_dead and not self._is_closed:
                lease.is_over = True
                self._taken.pop(worker, None)
                entry[0].spares.appendleft(worker)
                self._keeper.wake()
            else:
                lease.give_up()

    # -- shelves, with the lock held -----------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise SandboxClosed("the sandbox is closed")
        self._keeper.start()

    def _shelf_of(self, handler: Handler, *, announced: bool) -> Shelf:
        if announced:
            self._handlers[handler.key] = handler
        group = handler.group
        if handler.kind == "value" and handler.key not in self._handlers:
            group = (PASSING, handler.key)  # an unannounced one would make its neighbours' zygote start anew
        if group not in self._shelves:
            self._forget_idle([key for key in self._shelves if key[0] == PASSING], MOST_PASSING)
            self._forget_idle(list(self._shelves), MOST_SHELVES)
            plan = plan_for(self._found, handler.readable)
            self._shelves[group] = Shelf(self.means, plan, self._preload, is_passing=group[0] == PASSING)
        return self._shelves[group]

    def _forget_idle(self, groups: Sequence[tuple[object, ...]], most: int) -> None:
        """Make room for one more among `groups`: those idle for longest go."""
        idle = [key for key in groups if not self._is_used(self._shelves[key])]
        idle.sort(key=lambda key: self._shelves[key].last_used)
        for key in idle[: max(0, len(groups) - most + 1)]:
            self._unwanted += self._shelves.pop(key).zygotes
            self._keeper.wake()

    def _is_used(self, shelf: Shelf) -> bool:
        taken = any(worker in self._taken for zygote in shelf.zygotes for worker in zygote.workers.values())
        return taken or self._line.count(shelf) > 0

    def _prepare(self, shelf: Shelf, handler: Handler) -> Shelf:
        """Make sure that a zygote which has `handler` runs or starts; return the shelf that will have it."""
        if handler.key in shelf.failures:
            raise Refusal(Verdict.PRELOAD, shelf.failures[handler.key])
        if handler.key in shelf.threaded:
            shelf = self._single_shelf(handler)
            if handler.key in shelf.failures:
                raise Refusal(Verdict.PRELOAD, shelf.failures[handler.key])
        elif shelf.current is not None and shelf.current.has(handler) and not shelf.current.is_worn:
            return shelf
        if shelf.broken_starts >= MOST_BROKEN_STARTS:
            if time.monotonic() < shelf.broken_at + REST_S:
                raise Refusal(Verdict.NO_SANDBOX, shelf.last_problem)
            shelf.broken_starts = 0  # what was in the way may have been put right
        if not shelf.single or self._single_is_short(shelf):
            self._want(shelf)
        return shelf

    def _single_is_short(self, shelf: Shelf) -> bool:
        coming = shelf.wanted + len(shelf.spares) + sum(zygote.pending for zygote in shelf.zygotes)
        return coming <= self._line.count(shelf)

    def _single_shelf(self, handler: Handler) -> Shelf:
        group = ("single", handler.key)
        if group not in self._shelves:
            plan = plan_for(self._found, handler.paths_to_import())
            self._shelves[group] = Shelf(self.means, plan, self._preload, single=True)
            self._shelves[group].add([handler])
        return self._shelves[group]

    def _want(self, shelf: Shelf) -> None:
        """Let the keeper start a zygote: one, whoever asks meanwhile, unless each makes a single worker."""
        shelf.wanted = shelf.wanted + 1 if shelf.single else 1
        self._keeper.wake()

    def _restock(self, shelf: Shelf) -> None:
        free = max(0, self.max_workers - len(self._taken))
        shelf.restock(1 if shelf.is_passing else self._spares, min(self._line.count(shelf), free))

    def _lease(self, shelf: Shelf, handler: Handler) -> Lease | None:
        """Take a spare off the shelf; until it is among the taken, an interruption kills it and costs nothing else."""
        lease = shelf.pop(handler)
        if lease is not None:
            self._taken[lease.worker] = weakref.ref(lease)
            self.counts.calls += 1
        return lease

    def _serve_line(self) -> None:
        """Give free slots to those who wait, in order, as far as their shelves have spares."""
        for waiter in self._line:
            if len(self._taken) >= self.max_workers:
                return
            lease = self._lease(waiter.shelf, waiter.handler)
            if lease is not None:
                self._line.answer(waiter, lease)

    # -- the keeper's callbacks, with the lock held ----------------------------------------------------------------

    def _on_zygote(self, shelf: Shelf, zygote: Zygote) -> None:
        received = zygote.process.receive()
        if received is None:
            self._on_zygote_lost(shelf, zygote)
            return
        message, descriptors = received
        if "worker" in message:
            self._on_worker(shelf, zygote, message, descriptors)
        elif "ended" in message:
            self._on_ended(shelf, zygote, message["ended"])
        else:
            self._on_word(shelf, zygote, message)

    def _on_word(self, shelf: Shelf, zygote: Zygote, message: dict[str, Any]) -> None:
        if "loading" in message:
            zygote.loading = message["loading"]
        elif "failed" in message:
            self._fail_handler(shelf, zygote, message["failed"], message["error"])
        elif "threads" in message:
            self._split_threaded(shelf, zygote, message["threads"])
        elif "unborn" in message:
            self._on_stillborn(shelf, zygote, message["unborn"])
        elif "broken" in message:
            zygote.problem = message["broken"]
        elif "over" in message and message["over"] in zygote.workers:
            zygote.workers[message["over"]].out_of_memory = True
        elif "ready" in message:
            zygote.ready, zygote.loading = message["ready"], ""
            shelf.broken_starts = 0
            self._retire_replaced(shelf)
            self._restock(shelf)

    def _fail_handler(self, shelf: Shelf, zygote: Zygote | None, key: str, error: str) -> None:
        shelf.failures[key] = error
        logging.getLogger("sandbox").warning("%s cannot be used: %s", shelf.handlers[key].name, error)
        if zygote is not None:
            zygote.forget(shelf.handlers[key])
        self._line.refuse(shelf, key, Verdict.PRELOAD, error)

    def _split_threaded(self, shelf: Shelf, zygote: Zygote, key: str) -> None:
        """Run a handler whose import starts threads in a process of its own for each call: forking is not safe."""
        name = shelf.handlers[key].name
        logging.getLogger("sandbox").warning("%s starts threads at import: each call gets a new interpreter", name)
        shelf.threaded.add(key)
        waiters = [waiter for waiter in self._line if waiter.shelf is shelf and waiter.handler.key == key]
        single = self._single_shelf(shelf.handlers[key])
        for waiter in waiters:
            waiter.shelf = single
            self._want(single)
        self._end(zygote)
        if shelf.usable():
            self._want(shelf)

    def _retire_replaced(self, shelf: Shelf) -> None:
        if shelf.single:
            return
        for old in list(shelf.extra):
            if not any(worker in self._taken for worker in old.workers.values()):
                self._end(old)

    def _on_worker(self, shelf: Shelf, zygote: Zygote, message: dict[str, Any], descriptors: list[int]) -> None:
        try:
            worker = zygote.make_worker(message, descriptors)
        except (OSError, IndexError):  # this process has no descriptor left: the worker sees its host hang up, and ends
            for descriptor in descriptors:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            zygote.process.discard(message["worker"])
            return
        self.counts.forks += 1
        zygote.stillborn = 0
        self._workers[worker] = (shelf, zygote)
        self._keeper.watch(worker.exit_fd, lambda: self._on_death(worker))
        shelf.spares.append(worker)
        self._serve_line()

    def _on_ended(self, shelf: Shelf, zygote: Zygote, report: list[Any]) -> None:
        pid, status, cpu_s, peak_kib = report
        worker = zygote.workers.pop(pid, None)
        if worker is not None:
            worker.set_end((status, cpu_s, peak_kib * 1024))
        else:
            self._on_stillborn(shelf, zygote, describe_exit(status))

    def _on_stillborn(self, shelf: Shelf, zygote: Zygote, words: str) -> None:
        """Try again when a worker could not be made or has ended before it announced itself, but not for ever."""
        zygote.pending = max(0, zygote.pending - 1)
        zygote.stillborn += 1
        if zygote.stillborn < MOST_STILLBORN:
            self._restock(shelf)
            return
        zygote.stillborn = 0
        shelf.last_problem = f"workers end before they are ready ({words})"
        self._line.refuse(shelf, None, Verdict.NO_SANDBOX, shelf.last_problem)

    def _on_death(self, worker: Worker) -> None:
        shelf, zygote = self._workers.pop(worker)
        self._keeper.unwatch(worker.exit_fd)
        self._bury(worker)
        if worker in shelf.spares:
            shelf.spares.remove(worker)
            worker.release()
        if zygote in shelf.extra and not shelf.single:
            self._retire_replaced(shelf)
        self._serve_line()
        self._restock(shelf)

    def _bury(self, worker: Worker) -> None:
        worker.mark_dead()
        self._taken.pop(worker, None)

    def _on_zygote_lost(self, shelf: Shelf, zygote: Zygote) -> None:
        was_ready = zygote.ready is not None
        is_expected = zygote.single and was_ready
        self._end(zygote)
        if is_expected:
            return
        self.counts.zygotes_lost += 1
        if not was_ready:
            culprit = zygote.loading
            if culprit in shelf.failures:
                pass  # it has said why itself
            elif culprit in shelf.handlers and not zygote.problem:
                self._fail_handler(shelf, None, culprit, "the process ended while this handler was imported")
            else:
                shelf.mark_broken(zygote.problem or "a zygote ended before it was ready")
        self._start_again(shelf)

    def _start_again(self, shelf: Shelf) -> None:
        if not self._line.count(shelf):
            return
        if shelf.broken_starts >= MOST_BROKEN_STARTS:
            self._line.refuse(shelf, None, Verdict.NO_SANDBOX, shelf.last_problem)
            return
        self._want(shelf)

    def _tend(self) -> float | None:
        """Start and end what has been asked for; return in how many seconds to look again, `None` for never."""
        while self._unwanted:
            self._end(self._unwanted.pop())
        self._end_late()
        for shelf in list(self._shelves.values()):
            while shelf.wanted:
                shelf.wanted -= 1
                self._start(shelf)
        if self._line:
            self._reclaim()
            self._serve_line()
        starts = [zygote.started for zygote in self._zygotes if zygote.ready is None]
        return max(0.01, min(starts) + self._preload_s - time.monotonic()) if starts else None

    def _reclaim(self) -> None:
        """Kill workers whose lease is gone: Python drops an exception that strikes at the start of a `__del__`."""
        for worker in [worker for worker, lease in self._taken.items() if lease() is None]:
            worker.kill()
            worker.release()

    def _start(self, shelf: Shelf) -> None:
        try:
            zygote = shelf.start()
        except OSError as error:
            self._line.refuse(shelf, None, Verdict.NO_SANDBOX, f"a zygote could not be started: {error.strerror}")
            return
        self.counts.zygote_starts += 1
        self._zygotes[zygote] = shelf
        self._keeper.watch(zygote.process.fileno(), lambda: self._on_zygote(shelf, zygote))

    def _end_late(self) -> None:
        """End zygotes whose preload has run past its deadline, and put the handler it hangs in out of service."""
        late = time.monotonic() - self._preload_s
        for zygote, shelf in list(self._zygotes.items()):
            if zygote.ready is not None or zygote.started > late:
                continue
            if zygote.loading in shelf.handlers:
                detail = f"the import did not end within {self._preload_s:g} s"
                self._fail_handler(shelf, None, zygote.loading, detail)
            else:
                shelf.mark_broken("a zygote did not get ready in time")
            self._end(zygote)
            self._start_again(shelf)

    def _end(self, zygote: Zygote) -> None:
        """End a zygote with everything under it; its taken workers are lost, its spares forgotten."""
        shelf = self._zygotes.pop(zygote, None)
        if shelf is None:
            return
        self._keeper.unwatch(zygote.process.fileno())
        if shelf.current is zygote:
            shelf.current = None
        elif zygote in shelf.extra:
            shelf.extra.remove(zygote)
        self._drain(shelf, zygote)
        zygote.process.end()
        for worker in [worker for worker, (_, owner) in self._workers.items() if owner is zygote]:
            self._lose(shelf, worker)
        for worker in zygote.workers.values():  # those whose death was seen, but whose end nobody will report now
            worker.lose()

    def _drain(self, shelf: Shelf, zygote: Zygote) -> None:
        """Take in reports of ends that still wait, so that a crash is not told as a loss."""
        zygote.process.control.setblocking(False)
        while (received := zygote.process.receive()) is not None:
            message, descriptors = received
            for descriptor in descriptors:
                os.close(descriptor)
            if "ended" in message and message["ended"][0] in zygote.workers:
                self._on_ended(shelf, zygote, message["ended"])

    def _lose(self, shelf: Shelf, worker: Worker) -> None:
        del self._workers[worker]
        self._keeper.unwatch(worker.exit_fd)
        was_spare = worker in shelf.spares
        worker.lose()
        self._bury(worker)
        if was_spare:
            shelf.spares.remove(worker)
            worker.release()

    # -- the end -------------------------------------------------------------------------------------------------

    def statistics(self) -> dict[str, int]:
        """Return counts of now: busy, spares, waiting, zygotes."""
        with self._lock:
            return {
                "busy": len(self._taken),
                "spares": sum(len(shelf.spares) for shelf in self._shelves.values()),
                "waiting": len(self._line),
                "zygotes": len(self._zygotes),
            }

    def close(self) -> None:
        """End every process, refuse everyone in line, stop the keeper. May be called twice; after an interruption too."""
        with self._lock:
            self._is_closed = True
        self._keeper.stop()

    def _end_all(self) -> None:
        self._line.refuse(None, None, Verdict.CANCELLED, "the sandbox was closed")
        for zygote in list(self._zygotes):
            self._end(zygote)

    def hold(self) -> None:
        """Keep everybody else out, around a fork of the host."""
        self._lock.acquire()

    def let_go(self) -> None:
        """Let the others in again."""
        self._lock.release()

    def abandon(self) -> None:
        """In a forked copy of the host: let go of everything that is the original's and begin anew at the next call."""
        for zygote in self._zygotes:
            zygote.process.abandon()
        for worker in self._workers:
            worker.abandon()
        if not self._is_closed:
            self._keeper.forget()
            self._reset()

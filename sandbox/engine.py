"""The zygote engine: shelves, waiters and the keeper, the one thread that watches zygotes and deaths.

Processes: this host; for every group of handlers a guardian with its zygote; their workers. Callers take a worker under
the lock or wait in line; the keeper takes in new workers, reports of ends and deaths, and hands out freed slots.
"""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbox.errors import SandboxClosed
from sandbox.handlers import Handler
from sandbox.launcher import ZygoteProcess
from sandbox.model import Verdict
from sandbox.probing import Probe, plan_for
from sandbox.shelf import MOST_BROKEN_STARTS, Shelf, Zygote
from sandbox.spare import Refusal, Worker

EAGER_ZYGOTES = 4
MOST_SHELVES = 32


@dataclass(slots=True, eq=False)
class Waiter:
    """Stand in line for a worker; `deliver` is called once, from any thread, with the lock held."""

    shelf: Shelf
    handler: Handler
    deliver: Callable[["Worker | Refusal"], None]
    is_done: bool = False


@dataclass(slots=True)
class Counts:
    """Count what happened since the start."""

    calls: int = 0
    forks: int = 0
    kills: int = 0
    zygote_starts: int = 0
    zygotes_lost: int = 0
    overloaded: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)


class ZygoteEngine:
    """Give workers to callers; thread-safe. `close` ends every process it started."""

    name = "zygote"

    def __init__(
        self, found: Probe, *, max_workers: int, spares: int, preload: Sequence[str] = (), preload_s: float = 10.0
    ) -> None:
        self.max_workers = max_workers
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
        self._line: deque[Waiter] = deque()
        self._busy = 0
        self._is_closed = False
        self._keeper: threading.Thread | None = None
        self._epoll = select.epoll()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._epoll.register(self._wake_read, select.EPOLLIN)
        self._zygotes: dict[int, tuple[Shelf, Zygote]] = {}  # by control descriptor
        self._workers: dict[int, tuple[Shelf, Zygote, Worker]] = {}  # by pidfd
        self._taken: set[Worker] = set()

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
                    self._start(shelf)

    def take(self, handler: Handler, deliver: Callable[["Worker | Refusal"], None]) -> Waiter | Worker:
        """Return a worker that has loaded `handler`, or the waiter that stands in line for one.

        Raises `Refusal` when the handler can never run, `SandboxClosed` after `close`.
        """
        with self._lock:
            self._check_open()
            shelf = self._shelf_of(handler, announced=False)
            shelf.add([handler])
            shelf.last_used = time.monotonic()
            shelf = self._prepare(shelf, handler)
            if self._busy < self.max_workers and not self._line:
                worker = shelf.pop(handler)
                if worker is not None:
                    self._hand_out(worker)
                    self._restock(shelf)
                    return worker
            waiter = Waiter(shelf, handler, deliver)
            self._line.append(waiter)
            self._serve_line()
            self._restock(shelf)
            return waiter

    def is_loading(self, waiter: Waiter) -> bool:
        """Ask whether what the waiter waits for is a zygote's start, not a free slot."""
        with self._lock:
            return waiter.shelf.is_loading

    def leave_line(self, waiter: Waiter) -> bool:
        """Give up waiting; return whether that was in time (else something was delivered)."""
        with self._lock:
            if waiter.is_done:
                return False
            waiter.is_done = True
            if waiter in self._line:
                self._line.remove(waiter)
            return True

    def put_back(self, worker: Worker) -> None:
        """Return a worker that was never given a job."""
        with self._lock:
            entry = self._workers.get(worker.exit_fd)
            if worker not in self._taken or entry is None or worker.is_dead or self._is_closed:
                worker.kill()
                worker.release()
                return
            self._taken.discard(worker)
            self._busy -= 1
            entry[0].spares.appendleft(worker)
            self._serve_line()

    # -- shelves, with the lock held -----------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise SandboxClosed("the sandbox is closed")
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="sandbox-keeper", daemon=True)
            self._keeper.start()

    def _shelf_of(self, handler: Handler, *, announced: bool) -> Shelf:
        if announced:
            self._handlers[handler.key] = handler
        group = handler.group
        if handler.kind == "value" and handler.key not in self._handlers:
            group = ("value", handler.key)  # an unannounced one would make its neighbours' zygote start anew
        if group not in self._shelves:
            self._forget_idle()
            self._shelves[group] = Shelf(plan_for(self._found, handler.readable), self._preload)
        return self._shelves[group]

    def _forget_idle(self) -> None:
        while len(self._shelves) >= MOST_SHELVES:
            idle = [key for key, shelf in self._shelves.items() if not self._is_used(shelf)]
            if not idle:
                return
            oldest = min(idle, key=lambda key: self._shelves[key].last_used)
            for zygote in self._shelves.pop(oldest).zygotes:
                self._end(zygote)

    def _is_used(self, shelf: Shelf) -> bool:
        taken = any(worker in self._taken for zygote in shelf.zygotes for worker in zygote.workers.values())
        return taken or any(waiter.shelf is shelf for waiter in self._line)

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
            shelf.broken_starts = 0  # the next call may try again
            raise Refusal(Verdict.NO_SANDBOX, shelf.last_problem)
        if not shelf.single or self._single_is_short(shelf):
            self._start(shelf)
        return shelf

    def _single_is_short(self, shelf: Shelf) -> bool:
        coming = len(shelf.spares) + sum(zygote.pending for zygote in shelf.zygotes)
        return coming <= sum(1 for waiter in self._line if waiter.shelf is shelf)

    def _single_shelf(self, handler: Handler) -> Shelf:
        group = ("single", handler.key)
        if group not in self._shelves:
            self._shelves[group] = Shelf(plan_for(self._found, handler.readable), self._preload, single=True)
            self._shelves[group].add([handler])
        return self._shelves[group]

    def _start(self, shelf: Shelf) -> None:
        try:
            zygote = shelf.start()
        except OSError as error:
            raise Refusal(Verdict.NO_SANDBOX, f"a zygote could not be started: {error.strerror}") from error
        self.counts.zygote_starts += 1
        self._zygotes[zygote.process.fileno()] = (shelf, zygote)
        self._epoll.register(zygote.process.fileno(), select.EPOLLIN)
        self._wake()

    def _restock(self, shelf: Shelf) -> None:
        waiting = sum(1 for waiter in self._line if waiter.shelf is shelf)
        free = max(0, self.max_workers - self._busy)
        shelf.restock(self._spares, min(waiting, free))

    def _hand_out(self, worker: Worker) -> None:
        self._busy += 1
        self._taken.add(worker)
        self.counts.calls += 1

    def _serve_line(self) -> None:
        """Give free slots to those who wait, in order, as far as their shelves have spares."""
        for waiter in list(self._line):
            if self._busy >= self.max_workers:
                return
            worker = waiter.shelf.pop(waiter.handler)
            if worker is None:
                continue
            self._line.remove(waiter)
            self._hand_out(worker)
            self._answer(waiter, worker)

    def _answer(self, waiter: Waiter, what: "Worker | Refusal") -> None:
        waiter.is_done = True
        waiter.deliver(what)

    def _refuse(self, shelf: Shelf, key: str | None, verdict: Verdict, detail: str) -> None:
        for waiter in list(self._line):
            if waiter.shelf is shelf and key in (None, waiter.handler.key):
                self._line.remove(waiter)
                self._answer(waiter, Refusal(verdict, detail))

    # -- the keeper ----------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        epoll, lock = self._epoll, self._lock
        while True:
            events = epoll.poll(self._next_timeout())
            with lock:
                if self._is_closed:
                    return
                for fd, _ in events:
                    self._on_event(fd)
                self._check_loading()

    def _next_timeout(self) -> float:
        with self._lock:
            starts = [zygote.started for _, zygote in self._zygotes.values() if zygote.ready is None]
        return max(0.01, min(starts) + self._preload_s - time.monotonic()) if starts else -1

    def _on_event(self, fd: int) -> None:
        if fd == self._wake_read:
            os.read(fd, 4096)
        elif fd in self._zygotes:
            self._on_zygote(*self._zygotes[fd])
        elif fd in self._workers:
            self._on_death(fd)

    def _on_zygote(self, shelf: Shelf, zygote: Zygote) -> None:
        received = zygote.process.receive()
        if received is None:
            self._on_zygote_lost(shelf, zygote)
            return
        message, descriptors = received
        if "worker" in message:
            self._on_worker(shelf, zygote, message["worker"], descriptors)
        elif "ended" in message:
            self._on_ended(zygote, message["ended"])
        else:
            self._on_word(shelf, zygote, message)

    def _on_word(self, shelf: Shelf, zygote: Zygote, message: dict[str, Any]) -> None:
        if "loading" in message:
            zygote.loading = message["loading"]
        elif "failed" in message:
            self._fail_handler(shelf, zygote, message["failed"], message["error"])
        elif "threads" in message:
            self._split_threaded(shelf, zygote, message["threads"])
        elif "broken" in message:
            zygote.problem = message["broken"]
        elif "ready" in message:
            zygote.ready, zygote.loading = message["ready"], ""
            shelf.broken_starts = 0
            self._retire_replaced(shelf)
            self._restock(shelf)

    def _fail_handler(self, shelf: Shelf, zygote: Zygote | None, key: str, error: str) -> None:
        shelf.failures[key] = error
        if zygote is not None:
            zygote.forget(shelf.handlers[key])
        self._refuse(shelf, key, Verdict.PRELOAD, error)

    def _split_threaded(self, shelf: Shelf, zygote: Zygote, key: str) -> None:
        """Run a handler whose import starts threads in a process of its own for each call: forking is not safe."""
        import logging

        name = shelf.handlers[key].name
        logging.getLogger("sandbox").warning("%s starts threads at import: each call gets a new interpreter", name)
        shelf.threaded.add(key)
        waiters = [waiter for waiter in self._line if waiter.shelf is shelf and waiter.handler.key == key]
        single = self._single_shelf(shelf.handlers[key])
        for waiter in waiters:
            waiter.shelf = single
            self._start(single)
        self._end(zygote)
        if shelf.usable():
            self._start(shelf)

    def _retire_replaced(self, shelf: Shelf) -> None:
        if shelf.single:
            return
        for old in list(shelf.extra):
            if not any(worker in self._taken for worker in old.workers.values()):
                self._end(old)

    def _on_worker(self, shelf: Shelf, zygote: Zygote, pid: int, descriptors: list[int]) -> None:
        worker = zygote.make_worker(pid, descriptors)
        self.counts.forks += 1
        self._workers[worker.exit_fd] = (shelf, zygote, worker)
        self._epoll.register(worker.exit_fd, select.EPOLLIN)
        shelf.spares.append(worker)
        self._serve_line()

    def _on_ended(self, zygote: Zygote, report: list[Any]) -> None:
        pid, status, cpu_s, peak_kib = report
        worker = zygote.workers.pop(pid, None)
        if worker is not None:
            worker.set_end((status, cpu_s, peak_kib * 1024))
        else:  # it ended before it could announce itself
            zygote.pending = max(0, zygote.pending - 1)

    def _on_death(self, fd: int) -> None:
        shelf, zygote, worker = self._workers.pop(fd)
        self._epoll.unregister(fd)
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
        if worker in self._taken:
            self._taken.discard(worker)
            self._busy -= 1

    def _on_zygote_lost(self, shelf: Shelf, zygote: Zygote) -> None:
        was_ready = zygote.ready is not None
        is_expected = zygote.single and was_ready
        self._end(zygote)
        if is_expected:
            return
        self.counts.zygotes_lost += 1
        if not was_ready:
            culprit = zygote.loading
            if culprit in shelf.handlers and not zygote.problem:
                self._fail_handler(shelf, None, culprit, "the process ended while this handler was imported")
            else:
                shelf.broken_starts += 1
                shelf.last_problem = zygote.problem or "a zygote ended before it was ready"
        self._start_again(shelf)

    def _start_again(self, shelf: Shelf) -> None:
        if not any(waiter.shelf is shelf for waiter in self._line):
            return
        if shelf.broken_starts >= MOST_BROKEN_STARTS:
            self._refuse(shelf, None, Verdict.NO_SANDBOX, shelf.last_problem)
            return
        try:
            self._start(shelf)
        except Refusal as refusal:
            self._refuse(shelf, None, refusal.verdict, refusal.detail)

    def _check_loading(self) -> None:
        """End zygotes whose preload has run past its deadline, and put the handler it hangs in out of service."""
        late = time.monotonic() - self._preload_s
        for shelf, zygote in list(self._zygotes.values()):
            if zygote.ready is not None or zygote.started > late:
                continue
            if zygote.loading in shelf.handlers:
                detail = f"the import did not end within {self._preload_s:g} s"
                self._fail_handler(shelf, None, zygote.loading, detail)
            else:
                shelf.broken_starts += 1
                shelf.last_problem = "a zygote did not get ready in time"
            self._end(zygote)
            self._start_again(shelf)

    def _end(self, zygote: Zygote) -> None:
        """End a zygote with everything under it; its taken workers are lost, its spares forgotten."""
        entry = self._zygotes.pop(zygote.process.fileno(), None)
        if entry is None:
            return
        shelf = entry[0]
        self._epoll.unregister(zygote.process.fileno())
        if shelf.current is zygote:
            shelf.current = None
        elif zygote in shelf.extra:
            shelf.extra.remove(zygote)
        self._drain(zygote)
        zygote.process.end()
        for _, owner, worker in list(self._workers.values()):
            if owner is zygote:
                self._lose(shelf, worker)

    def _drain(self, zygote: Zygote) -> None:
        """Take in reports of ends that still wait, so that a crash is not told as a loss."""
        zygote.process.control.setblocking(False)
        while (received := zygote.process.receive()) is not None:
            message, descriptors = received
            for descriptor in descriptors:
                os.close(descriptor)
            if "ended" in message:
                self._on_ended(zygote, message["ended"])

    def _lose(self, shelf: Shelf, worker: Worker) -> None:
        if self._workers.pop(worker.exit_fd, None) is not None:
            self._epoll.unregister(worker.exit_fd)
        was_spare = worker in shelf.spares
        worker.lose()
        self._bury(worker)
        if was_spare:
            shelf.spares.remove(worker)
            worker.release()

    # -- the end -------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"!")
        except BlockingIOError:
            return

    def statistics(self) -> dict[str, int]:
        """Return counts of now: busy, spares, waiting, zygotes."""
        with self._lock:
            return {
                "busy": self._busy,
                "spares": sum(len(shelf.spares) for shelf in self._shelves.values()),
                "waiting": len(self._line),
                "zygotes": len(self._zygotes),
            }

    def close(self) -> None:
        """End every process, refuse everyone in line, stop the keeper. May be called twice."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            for waiter in list(self._line):
                self._answer(waiter, Refusal(Verdict.CANCELLED, "the sandbox was closed"))
            self._line.clear()
            for _, zygote in list(self._zygotes.values()):
                self._end(zygote)
            self._wake()
        if self._keeper is not None and self._keeper is not threading.current_thread():
            self._keeper.join()
        self._close_descriptors()

    def _close_descriptors(self) -> None:
        self._epoll.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def abandon(self) -> None:
        """In a forked copy of the host: let go of everything that is the original's and begin anew at the next call."""
        processes: list[ZygoteProcess] = [zygote.process for _, zygote in self._zygotes.values()]
        workers = [worker for _, _, worker in self._workers.values()]
        for process in processes:
            process.abandon()
        for worker in workers:
            worker.is_dead = True
            worker._lock = threading.Lock()
            worker.release()
        was_closed = self._is_closed
        if not was_closed:
            self._close_descriptors()
            self._reset()

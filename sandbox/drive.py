"""Drive a supervision: wait on the reply socket, the output pipe, the worker's death and the deadline, never by ticking.

Two drivers share one `Session`: the blocking one polls in the caller's thread, the asyncio one uses the loop's readers
and no thread.
"""

import asyncio
import os
import select
import time

from sandbox.model import Outcome, Verdict
from sandbox.spare import Lease, Worker
from sandbox.supervise import FLOOD_FACTOR, Supervision

CHUNK = 65_536
# After a kill the answer waits this long for the process to be gone; reaping 2 GiB takes longer than anybody waits.
BURIAL_S = 0.05
# A worker that closed its reply socket gets this long to end by itself, so that a crash is told from a hang.
LAST_WORDS_S = 0.25
LAST_REPORT_S = 1.0


class Session:
    """Hold one job on one worker: what is still to be sent, and what has been seen."""

    def __init__(self, lease: Lease, supervision: Supervision, job: bytes) -> None:
        self.lease = lease
        self.worker = lease.worker
        self.supervision = supervision
        self._job_bytes = len(job)
        self._unsent = memoryview(job)
        self.has_hung_up = False
        self.cpu_s: float | None = None

    def send_more(self) -> bool:
        """Send as much of the job as goes; return whether some is left."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self.worker.socket.send(self._unsent) :]
        except BlockingIOError:
            return True
        except OSError:  # the worker is dead; its end is seen elsewhere
            self._unsent = memoryview(b"")
        return False

    def read_reply(self) -> bool:
        """Read one chunk of what the reply socket has; return whether there may be more.

        One only: a sender that drips without end must not keep anybody from looking at the clock.
        """
        if self.supervision.is_decided or self.has_hung_up:
            return False
        try:
            data = self.worker.socket.recv(CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self.has_hung_up = not data
        if data:
            self.supervision.on_reply(data, time.monotonic())
        return bool(data)

    def read_output(self) -> bool:
        """Read one chunk of output; return whether there may be more."""
        try:
            data = os.read(self.worker.output_fd, CHUNK)
        except OSError:
            return False
        if data:
            self.supervision.on_output(data, time.monotonic())
        return bool(data)

    def on_death(self) -> None:
        """Take notice of the process's end: what it wrote before still counts."""
        while self.read_reply() and time.monotonic() < self.supervision.deadline:
            continue
        self.supervision.on_end(time.monotonic())

    def settle(self) -> None:
        """Kill the decided job's worker and take in what it printed before its reply, within a bound."""
        supervision = self.supervision
        if supervision.killed is not None:
            self.worker.kill()
        chunks = FLOOD_FACTOR * supervision.limits.output_bytes // CHUNK + 2
        while chunks and self.read_output():
            chunks -= 1
        self.cpu_s = self.worker.cpu_seconds()
        self.worker.kill()

    @property
    def end_wait_s(self) -> float:
        """Say how long the answer waits to learn how the process ended."""
        if self.supervision.needs_exit_status or self.cpu_s is None:  # it is gone already: the report is on its way
            return LAST_REPORT_S
        return BURIAL_S if self.supervision.killed is not None else 0.0

    def conclude(self) -> Outcome:
        """Release the worker and return the outcome."""
        status, cpu_s, peak = self.worker.end
        self.worker.release()
        self.lease.is_over = True
        return self.supervision.outcome(
            exit_status=status,
            cpu_s=cpu_s if cpu_s is not None else self.cpu_s,
            peak_bytes=peak,
            job_bytes=self._job_bytes,
            lost=self.worker.lost,
            out_of_memory=self.worker.out_of_memory,
        )


def run_blocking(session: Session) -> Outcome:
    """Run the session in this thread; a KeyboardInterrupt passes on after the kill."""
    try:
        _poll_until_decided(session)
    except BaseException:
        session.supervision.kill(Verdict.CANCELLED, time.monotonic())
        session.lease.give_up()
        raise
    session.settle()
    if session.end_wait_s:
        session.worker.wait_end(session.end_wait_s)
    return session.conclude()


def _poll_until_decided(session: Session) -> None:
    worker, supervision = session.worker, session.supervision
    poller = select.poll()
    socket_fd = worker.socket.fileno()
    unsent = session.send_more()
    poller.register(socket_fd, select.POLLIN | (select.POLLOUT if unsent else 0))
    poller.register(worker.output_fd, select.POLLIN)
    poller.register(worker.exit_fd, select.POLLIN)
    until = supervision.deadline
    while not supervision.is_decided:
        left = until - time.monotonic()
        if left <= 0:
            _run_out(session)
            return
        for fd, _ in poller.poll(left * 1000 + 0.5):
            if fd == socket_fd:
                if unsent and not (unsent := session.send_more()):
                    poller.modify(socket_fd, select.POLLIN)
                session.read_reply()
                if session.has_hung_up:
                    poller.unregister(socket_fd)
                    until = min(until, time.monotonic() + LAST_WORDS_S)
            elif fd == worker.output_fd:
                if not session.read_output():
                    poller.unregister(worker.output_fd)
            elif not supervision.is_decided:
                session.on_death()
                return


def _run_out(session: Session) -> None:
    """Decide at the deadline, or when a worker that hung up did not end by itself."""
    now = time.monotonic()
    if now >= session.supervision.deadline:
        session.supervision.on_deadline(now)
    elif session.worker.is_running():
        session.supervision.on_hang_up(now)
    else:
        session.supervision.on_end(now)


async def run_async(session: Session) -> Outcome:
    """Run the session on the running loop's readers; cancelling kills the worker and passes the cancellation on."""
    try:
        await _Watch(session).wait_decided()
        session.settle()
        if session.end_wait_s:
            await _wait_end(session.worker, session.end_wait_s)
    except BaseException:
        session.supervision.kill(Verdict.CANCELLED, time.monotonic())
        session.lease.give_up()
        raise
    return session.conclude()


class _Watch:
    """Put a session's descriptors on the running loop until it is decided."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._decided: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None

    async def wait_decided(self) -> None:
        """Wait until the supervision has decided."""
        session, loop = self._session, self._loop
        worker = session.worker
        fds = (worker.socket.fileno(), worker.output_fd, worker.exit_fd)
        try:
            loop.add_reader(fds[0], self._on_reply)
            loop.add_reader(fds[1], self._on_output)
            loop.add_reader(fds[2], self._on_death)
            if session.send_more():
                loop.add_writer(fds[0], self._on_writable)
            self._set_timer(session.supervision.deadline)
            await self._decided
        finally:
            if self._timer is not None:
                self._timer.cancel()
            loop.remove_writer(fds[0])
            for fd in fds:
                loop.remove_reader(fd)

    def _set_timer(self, until: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0.0, until - time.monotonic()), self._on_timer)

    def _check(self) -> None:
        if self._session.supervision.is_decided and not self._decided.done():
            self._decided.set_result(None)

    def _on_reply(self) -> None:
        self._session.read_reply()
        if self._session.has_hung_up and not self._session.supervision.is_decided:
            self._loop.remove_reader(self._session.worker.socket.fileno())
            self._set_timer(min(self._session.supervision.deadline, time.monotonic() + LAST_WORDS_S))
        self._check()

    def _on_writable(self) -> None:
        if not self._session.send_more():
            self._loop.remove_writer(self._session.worker.socket.fileno())

    def _on_output(self) -> None:
        if not self._session.read_output():
            self._loop.remove_reader(self._session.worker.output_fd)
        self._check()

    def _on_death(self) -> None:
        self._loop.remove_reader(self._session.worker.exit_fd)
        self._session.on_death()
        self._check()

    def _on_timer(self) -> None:
        _run_out(self._session)
        self._check()


async def _wait_end(worker: Worker, timeout_s: float) -> None:
    loop = asyncio.get_running_loop()
    known: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        def set_known() -> None:
            if not known.done():
                known.set_result(None)

        try:
            loop.call_soon_threadsafe(set_known)
        except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
            return

    worker.call_at_end(tell)
    try:
        await asyncio.wait_for(known, timeout_s)
    except TimeoutError:
        return

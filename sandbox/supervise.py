"""Supervise one job: a state machine without input or output, shared by the blocking and the asyncio driver.

The driver feeds it bytes, ends of file, the worker's death and the clock; it says when the job is decided. Order of
decision: the first complete REPLY before the deadline; a kill of our own; the worker's end.
"""

import signal
from typing import Any

from sandbox import reply as reply_decoder
from sandbox.limits import Limits
from sandbox.model import Failure, Outcome, Output, Usage, Verdict
from sandbox.verdict import WORKER_FAILURES, Evidence, describe_exit, draw
from sandbox.wire import (
    PROGRESS_FRAMES,
    PROGRESS_PER_S,
    REPLY,
    REPLY_OVERHEAD_BYTES,
    FrameReader,
    ProtocolViolation,
)

FLOOD_FACTOR = 16  # C31: printing past 16 times the cap kills the worker


class Supervision:
    """Follow one job from its first byte to its end; times are monotonic instants in seconds."""

    def __init__(self, limits: Limits, started: float, until: float | None = None) -> None:
        self.limits = limits
        self.started = started
        self.deadline = started + limits.wall_s
        if until is not None:
            self.deadline = min(self.deadline, until)
        self.killed: Verdict | None = None
        self.is_decided = False
        self.ended: float | None = None
        self._reader = FrameReader(limits.result_bytes + REPLY_OVERHEAD_BYTES)
        self._head = bytearray()
        self._printed = 0
        self._violation = ""
        self._reply: dict[str, Any] | None = None
        self._progress = 0
        self._last_progress: Any = None
        self._has_hung_up = False

    def on_reply(self, data: bytes, now: float) -> None:
        """Take bytes from the reply socket."""
        if self.is_decided:
            return
        try:
            for kind, body in self._reader.feed(data):
                if kind == REPLY:
                    self._take_reply(body, now)
                else:
                    self._take_progress(body, now)
        except ProtocolViolation as error:
            self._violation = str(error)
            self._decide(now)
        except Exception as error:  # our own bug: whatever a worker sends, its call is answered
            self._violation = f"a frame that cannot be read: {type(error).__name__}"
            self._decide(now)

    def on_output(self, data: bytes, now: float) -> None:
        """Take bytes from the output pipe: the head is kept, the rest counted, a flood decides the job."""
        self._printed += len(data)
        room = self.limits.output_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
        if self._printed > FLOOD_FACTOR * self.limits.output_bytes and not self.is_decided:
            self.kill(Verdict.OUTPUT_LIMIT, now)

    def on_deadline(self, now: float) -> None:
        """Take notice that the deadline has passed."""
        if not self.is_decided:
            self.kill(Verdict.TIMEOUT, now)

    def on_end(self, now: float) -> None:
        """Take notice that the worker has ended, or closed its socket, with no reply."""
        if self._reader.is_partial:
            self._violation = self._violation or "a frame that was never finished"
        self._decide(now)

    def on_hang_up(self, now: float) -> None:
        """Take notice that the worker closed its reply socket and did not end in time: if it lives, it is killed for it."""
        self._has_hung_up = True
        self._decide(now)

    def kill(self, reason: Verdict, now: float) -> None:
        """Decide the job by a kill of our own; the driver carries it out."""
        if self.killed is None and not self.is_decided:
            self.killed = reason
            self._decide(now)

    @property
    def needs_exit_status(self) -> bool:
        """Ask whether the verdict hangs on how the process ended."""
        return self.killed is None and self._reply is None

    def outcome(
        self,
        *,
        exit_status: int | None,
        cpu_s: float | None,
        peak_bytes: int | None,
        job_bytes: int,
        lost: bool,
        out_of_memory: bool = False,
    ) -> Outcome:
        """Draw the verdict and return the outcome, without receipt and queue time, which the caller adds."""
        if self._has_hung_up and exit_status == -signal.SIGKILL:  # our own
            exit_status = None
        failure = (self._reply or {}).get("failure")
        kind = "ok" if self._reply is not None and failure is None else (failure or {}).get("kind")
        verdict = draw(
            Evidence(
                killed=self.killed,
                out_of_memory=out_of_memory,
                violation=self._violation,
                exit_status=exit_status,
                cpu_s=cpu_s,
                cpu_limit_s=self.limits.cpu_seconds,
                reply=kind if self._reply is not None else None,
                zygote_lost=lost,
            )
        )
        return Outcome(
            verdict=verdict,
            value=(self._reply or {}).get("ok") if verdict is Verdict.OK else None,
            failure=_failure(failure) if failure and verdict in set(WORKER_FAILURES.values()) else None,
            detail=self._describe(verdict, exit_status),
            output=Output(
                text=self._head.decode("utf-8", "replace"), total_bytes=self._printed, kept_bytes=len(self._head)
            ),
            usage=Usage(
                cpu_s=cpu_s,
                peak_memory_bytes=peak_bytes,
                reply_bytes=self._reader.received_bytes,
                job_bytes=job_bytes,
            ),
            run_s=(self.ended or self.started) - self.started,
            progress=(self._progress, self._last_progress),
            limits=self.limits,
        )

    def _describe(self, verdict: Verdict, exit_status: int | None) -> str:
        if self.killed is not None:
            return f"killed by the host: {self.killed}"
        if self._violation:
            return self._violation
        if self._has_hung_up and exit_status is None:
            return "it closed its reply socket and went on; killed by the host"
        return "" if self._reply is not None else describe_exit(exit_status)

    def _take_reply(self, body: bytes, now: float) -> None:
        if now > self.deadline:
            self.on_deadline(now)
            return
        value = reply_decoder.decode(body)
        self._reply = _check_shape(value)
        self._decide(now)

    def _take_progress(self, body: bytes, now: float) -> None:
        self._progress += 1
        # One second's allowance on top, since the clocks of sender and reader differ by the time on the wire.
        allowed = min(PROGRESS_FRAMES, PROGRESS_PER_S * (now - self.started + 2))
        if self._progress > allowed:
            raise ProtocolViolation("more progress frames than allowed")
        self._last_progress = reply_decoder.decode(body)

    def _decide(self, now: float) -> None:
        if not self.is_decided:
            self.is_decided = True
            self.ended = now


def _check_shape(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) != 1:
        raise ProtocolViolation("a reply of the wrong shape")
    if "ok" in value:
        return value
    failure = value.get("failure")
    if not isinstance(failure, dict) or not isinstance(failure.get("kind"), str):
        raise ProtocolViolation("a reply of the wrong shape")
    if failure["kind"] not in WORKER_FAILURES:
        raise ProtocolViolation("a reply of the wrong shape")
    return value


def _failure(failure: dict[str, Any]) -> Failure:
    def text(name: str, limit: int) -> str:
        value = failure.get(name, "")
        return value[:limit] if isinstance(value, str) else ""

    return Failure(
        type=text("type", 200),
        message=text("message", 2_000),
        traceback=text("traceback", 8_000),
        path=text("path", 1_000) if text("path", 1).startswith("/") else "",
        hint=text("hint", 500),
        grant=text("grant", 300),
        data=failure.get("data"),
    )

"""Run a file of calls: NDJSON in, NDJSON out, in order, with a window so that memory does not grow with the file."""

import json
import queue
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any

from dispatcher.caps import clean
from dispatcher.cli.talk import UsageProblem, say
from dispatcher.faults import Fault, Reject
from dispatcher.parse import parse_json

LINE_BYTES = 4 << 20
KEYS = {"id", "tool", "arguments"}
Answer = tuple[Any, str | None, dict[str, Any]]
_Window = queue.Queue[Future[Answer] | None]


def run_file(dispatcher: Any, name: str, jobs: int) -> bool:
    """Answer every line of the file as soon as its turn has come; return whether some call answered an error.

    A thread reads ahead, so that an answer never waits for the next line: who feeds us may be waiting for it.
    """
    failed = False
    with _opened(name) as file, ThreadPoolExecutor(jobs) as pool, _Progress() as advance:
        window: _Window = queue.Queue(4 * jobs)
        reading = _Reader(dispatcher, file, pool, window)
        try:
            while (future := window.get()) is not None:
                failed |= _write(future.result(), advance)
            if reading.exception is not None:
                raise reading.exception
        except BaseException:
            reading.is_abandoned = True
            dispatcher.close()
            raise
    return failed


class _Reader(threading.Thread):
    """Read lines, hand each to the pool and its future, in order, to the window; `None` when there are no more."""

    def __init__(self, dispatcher: Any, file: IO[bytes], pool: ThreadPoolExecutor, window: "_Window") -> None:
        super().__init__(name="reader", daemon=True)  # it may hang in a read for ever
        self.exception: BaseException | None = None
        self.is_abandoned = False
        self._dispatcher = dispatcher
        self._file = file
        self._pool = pool
        self._window = window
        self.start()

    def run(self) -> None:
        """Read until the end of the file, or until nobody wants more."""
        try:
            for line in _lines(self._file):
                if self.is_abandoned:
                    return
                self._window.put(self._pool.submit(answer, self._dispatcher, line))
        except BaseException as error:
            self.exception = error
        finally:
            self._window.put(None)


def _opened(name: str) -> AbstractContextManager[IO[bytes]]:
    if name == "-":  # never closed: that would wait for the reader, who may be waiting for a person
        return nullcontext(open(0, "rb", closefd=False))
    try:
        return open(name, "rb")
    except OSError as error:
        raise UsageProblem(f"cannot read {name!r}: {error.strerror}") from error


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines without blank ones; of a line over the cap only its beginning, which is then refused for its size."""
    while line := file.readline(LINE_BYTES + 1):
        rest = line
        while len(rest) > LINE_BYTES and not rest.endswith(b"\n"):
            rest = file.readline(LINE_BYTES + 1)
        if line.strip():
            yield line


def answer(dispatcher: Any, line: bytes) -> Answer:
    """Return id, tool and observation for one line; a line that is not a call has neither id nor tool."""
    try:
        call = _read(line)
    except Reject as reject:
        return None, None, _refuse(reject.fault)
    arguments = call.get("arguments", "{}")
    observation = dispatcher.execute(call["tool"], arguments)
    return call.get("id"), call["tool"], observation.to_dict()


def _read(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise Reject(Fault(code="invalid_json", reason="syntax", hint="The line is not UTF-8")) from None
    value = parse_json(text, limit_bytes=LINE_BYTES)
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str):
        raise Reject(Fault(code="invalid_args", hint='A line must read {"tool": name, "arguments": text or object}'))
    unknown = sorted(set(value) - KEYS)
    if unknown:
        raise Reject(
            Fault(code="invalid_args", hint=f"A call has no key {unknown[0][:40]!r}; only id, tool, arguments")
        )
    if not isinstance(value.get("arguments", ""), str | dict):
        raise Reject(Fault(code="invalid_args", hint="arguments must be text or an object"))
    return value


def _refuse(fault: Fault) -> dict[str, Any]:
    from dispatcher.facts import CallFacts
    from dispatcher.ids import new_correlation_id
    from dispatcher.observation import render_fault

    return render_fault(fault, call=CallFacts(name="", correlation_id=new_correlation_id())).to_dict()


def _write(answered: Answer, advance: Any) -> bool:
    call_id, tool, observation = answered
    say(
        json.dumps(
            {"id": clean(call_id), "tool": clean(tool), **observation}, ensure_ascii=False, separators=(",", ":")
        )
    )
    advance()
    return not observation["ok"]


class _Progress:
    """Show a count on stderr while it is a terminal."""

    def __enter__(self) -> Any:
        self._bar: Any = None
        if not sys.stderr.isatty():
            return lambda: None
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        task = self._bar.add_task("calls", total=None)
        self._bar.start()
        return lambda: self._bar.advance(task)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

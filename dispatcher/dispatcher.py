"""The dispatcher: any call, however bad, becomes an observation."""

import asyncio
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dispatcher import executor, finish
from dispatcher.call import Call, as_call
from dispatcher.errors import DispatcherClosed
from dispatcher.faults import Fault
from dispatcher.observation import Observation
from dispatcher.pipeline import AFTER, BEFORE, State, Surroundings, run_stages, set_own_fault
from dispatcher.record import Sink, emit, log_record
from dispatcher.registry import Registry
from dispatcher.statistics import Counts, Statistics
from sandbox import DEFAULT_ISOLATION, Limits, Sandbox, SandboxClosed


class Dispatcher:
    """Run the calls of a registry's tools; thread-safe, and usable from any event loop.

    Raises `SandboxUnavailable` when the host gives less than `isolation` (A to E, or "none"). `record` gets a
    `CallRecord` for every call (default: the logger `dispatcher.calls`). `expose_exceptions` shows handlers' exceptions
    to the model: for development only. Leaving the `with` block, `close()` or the interpreter's exit ends every process.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        isolation: str = DEFAULT_ISOLATION,
        engine: str = "auto",
        max_workers: int | None = None,
        spares: int | str = "auto",
        preload: Sequence[str] = (),
        preload_s: float = 10.0,
        record: Sink | None = None,
        expose_exceptions: bool = False,
    ) -> None:
        if not isinstance(registry, Registry):
            raise TypeError(f"a Dispatcher takes a Registry, not {type(registry).__name__}")
        if not isinstance(limits, Limits):
            raise TypeError(f"limits must be Limits(...), not {type(limits).__name__}")
        if record is not None and not callable(record):
            raise TypeError("record must be a callable that takes a CallRecord")
        if expose_exceptions:
            warnings.warn("expose_exceptions shows handlers' exceptions to the model: not for production", stacklevel=2)
        self.sandbox = Sandbox(
            limits=limits,
            isolation=isolation,
            engine=engine,
            max_workers=max_workers,
            spares=spares,
            preload=preload,
            preload_s=preload_s,
        )
        self.registry = registry
        self._around = Surroundings(
            registry=registry, limits=limits, probe=self.sandbox.probe, expose_exceptions=expose_exceptions
        )
        self._sink = record or log_record
        self._counts = Counts()
        self._is_closed = False
        self.sandbox.add(*[tool.handler for tool in registry])

    def execute(
        self, name: str, arguments: Any = "{}", *, call_id: str | None = None, timeout_s: float | None = None
    ) -> Observation:
        """Run one call and return its observation, whatever the name and the arguments are.

        `arguments` is the model's text, UTF-8 bytes or a parsed dict; `timeout_s` may only shorten the tool's limit.
        Raises `DispatcherClosed` after `close`, `ValueError`/`TypeError` for a bad `timeout_s` or `call_id`;
        KeyboardInterrupt passes on after the kill.
        """
        return self._execute(self._state(name, arguments, call_id, timeout_s))

    async def execute_async(
        self, name: str, arguments: Any = "{}", *, call_id: str | None = None, timeout_s: float | None = None
    ) -> Observation:
        """Do what `execute` does, without a thread; cancelling the awaiting task kills the worker."""
        return await self._execute_async(self._state(name, arguments, call_id, timeout_s))

    def execute_batch(self, calls: Iterable[Any], *, budget_s: float | None = None) -> list[Observation]:
        """Run `Call`s or (tool, arguments) pairs in parallel and answer each, in order.

        Past `budget_s` a running call is a `timeout`, and one that has not started is `unavailable`/`budget`.
        """
        states = self._states(calls, budget_s)
        if not states:
            return []
        width = min(len(states), self.sandbox.max_workers)
        with ThreadPoolExecutor(width, thread_name_prefix="dispatcher-batch") as pool:
            return list(pool.map(self._execute, states))

    async def execute_batch_async(self, calls: Iterable[Any], *, budget_s: float | None = None) -> list[Observation]:
        """Do what `execute_batch` does, on the running event loop; cancelling kills every call of it."""
        states = self._states(calls, budget_s)
        gate = asyncio.Semaphore(self.sandbox.max_workers)

        async def run(state: State) -> Observation:
            async with gate:
                return await self._execute_async(state)

        return list(await asyncio.gather(*[run(state) for state in states]))

    def statistics(self) -> Statistics:
        """Return the counts of answers by (tool, code, reason)."""
        return self._counts.snapshot()

    def close(self) -> None:
        """End every process. May be called twice."""
        self._is_closed = True
        self.sandbox.close()

    def __enter__(self) -> "Dispatcher":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> "Dispatcher":
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def _state(
        self, name: Any, arguments: Any, call_id: Any, timeout_s: float | None, until: float | None = None
    ) -> State:
        if self._is_closed:
            raise DispatcherClosed("the dispatcher is closed")
        if call_id is not None and not isinstance(call_id, str):
            raise TypeError(f"call_id must be a string, not {type(call_id).__name__}")
        self._around.limits.shortened(timeout_s)  # a bad value is the caller's mistake, whatever the tool
        asked = name if isinstance(name, str) else f"<{type(name).__name__}>"
        return State(name=asked, raw=arguments, call_id=call_id, timeout_s=timeout_s, until=until)

    def _states(self, calls: Iterable[Any], budget_s: float | None) -> list[State]:
        self._around.limits.shortened(budget_s)
        until = None if budget_s is None else time.monotonic() + budget_s
        listed: list[Call] = [as_call(item) for item in calls]
        return [self._state(call.tool, call.arguments, call.call_id, None, until) for call in listed]

    def _execute(self, state: State) -> Observation:
        if run_stages(BEFORE, state, self._around):
            try:
                state.outcome = executor.run(self.sandbox, state)
            except Exception as error:
                self._fail(state, error)
            except BaseException:
                self._record_cancelled(state)
                raise
            else:
                run_stages(AFTER, state, self._around)
        return self._finish(state)

    async def _execute_async(self, state: State) -> Observation:
        if run_stages(BEFORE, state, self._around):
            try:
                state.outcome = await executor.run_async(self.sandbox, state)
            except Exception as error:
                self._fail(state, error)
            except BaseException:
                self._record_cancelled(state)
                raise
            else:
                run_stages(AFTER, state, self._around)
        return self._finish(state)

    def _fail(self, state: State, error: Exception) -> None:
        if isinstance(error, SandboxClosed):
            raise DispatcherClosed("the dispatcher is closed") from None
        set_own_fault(state, error)

    def _record_cancelled(self, state: State) -> None:
        """Count and record a call that its caller gave up: nobody is there to read an answer."""
        state.fault = Fault(code="cancelled", detail="the caller gave up; its worker was killed")
        self._finish(state)

    def _finish(self, state: State) -> Observation:
        try:
            observation = finish.render(state, self._around)
            record = finish.make_record(state, observation)
        except Exception as error:  # our own bug, or a caller so deep in the stack that none is left
            set_own_fault(state, error)
            state.outcome = None
            observation = finish.render(state, self._around)
            record = finish.make_record(state, observation)
        self._counts.add(state.tool.name if state.tool else None, observation.code, observation.reason)
        emit(record, self._sink)
        return observation

"""Whole calls through a Dispatcher: every kind of handler, argument and end, with real workers."""

import asyncio
import datetime
import decimal
import enum
import functools
import importlib
import inspect
import json
import logging
import subprocess
import sys
import textwrap
import threading
import time
import types
import uuid
from pathlib import Path
from typing import Annotated, Any

import handlers_for_tests as handlers
import pytest
from pydantic import AfterValidator, BaseModel, Field

from dispatcher import Call, Dispatcher, DispatcherClosed, Limits, Registry, ToolError

OPEN = {"type": "object", "additionalProperties": True}
HERE = str(Path(handlers.__file__).parent)


def schema_of(**types):
    return {
        "type": "object",
        "required": list(types),
        "properties": {name: {"type": kind} for name, kind in types.items()},
    }


class Counter:
    def __init__(self, start):
        self.start = start

    def plus(self, n):
        self.start += n
        return self.start


@pytest.fixture(scope="module")
def ready(engine):
    """A dispatcher over many tools, and the records of its calls."""
    registry = Registry()
    base = 100

    def closure(n):
        return base + n

    registry.register("closure", schema_of(n="integer"), closure)
    registry.register("lambda", schema_of(n="integer"), lambda n: n * 2)
    registry.register("partial", schema_of(b="integer"), functools.partial(handlers.add, 1))
    registry.register("method", schema_of(n="integer"), Counter(5).plus)
    registry.register("importable", schema_of(a="integer", b="integer"), handlers.add)
    registry.register("entry", schema_of(a="integer", b="integer"), "handlers_for_tests:add")
    registry.register("async", schema_of(a="integer", b="integer"), handlers.add_async)
    for name in ("spin", "power"):
        registry.register(name, schema_of(), getattr(handlers, name), limits=Limits(wall_s=0.5), effect="read")
    long = Limits(wall_s=20, memory_bytes=64 << 20)
    for name in ("hog", "flood", "exit_zero"):
        registry.register(name, schema_of(), getattr(handlers, name), limits=long, effect="read")
    registry.register("fail", schema_of(text="string"), handlers.fail, effect="read")
    registry.register("speak", schema_of(count="integer"), handlers.speak, show_output=True)
    registry.register("big", schema_of(size="integer"), handlers.big_result)
    records = []
    with Dispatcher(registry, **engine, record=records.append) as dispatcher:
        yield dispatcher, records


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        ("closure", '{"n":1}', 101),
        ("lambda", '{"n":4}', 8),
        ("partial", '{"b":2}', 3),
        ("method", '{"n":2}', 7),
        ("method", '{"n":2}', 7),
        ("importable", '{"a":1,"b":2}', 3),
        ("entry", {"a": 1, "b": 2.0}, 3),
        ("async", b'{"a":1,"b":2}', 3),
    ],
)
def test_every_form_of_handler(ready, tool, arguments, result):
    """A closure, lambda, partial, bound method, importable function, entry point and coroutine function all answer."""
    observation = ready[0].execute(tool, arguments, call_id="call-1")
    assert (observation.ok, observation.result, observation.call_id) == (True, result, "call-1"), observation


@pytest.mark.parametrize(
    ("tool", "code", "reason", "following"),
    [
        ("spin", "timeout", None, "retry"),
        ("power", "timeout", None, "retry"),
        ("hog", "internal_error", "memory_limit", "retry"),
        ("flood", "internal_error", "output_limit", "retry"),
        ("exit_zero", "internal_error", "no_result", "retry"),
    ],
)
def test_hostile_call_gets_its_code_and_one_record(ready, tool, code, reason, following):
    """A hostile handler is a coded answer with an id that finds exactly one record."""
    dispatcher, records = ready
    observation = dispatcher.execute(tool, "{}")
    assert (observation.code, observation.reason, observation.next) == (code, reason, following)
    found = [record for record in records if record.correlation_id == observation.correlation_id]
    assert len(found) == 1 and found[0].code == code and found[0].tier == observation.receipt.tier


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("importable", '{"a":1'),
        ("importable", '{"a":"1","b":2}'),
        ("importable", None),
        ("importable", [1]),
        ("importable", object()),
        ("importable", "\ud800"),
        ("importable", b"\xff"),
        ("nobody", "{}"),
        (None, "{}"),
        (17, b""),
        ("x" * 100_000, "{}"),
        ("importable\x00\x1b[31m", "{}"),
    ],
)
def test_bad_input_is_answered_without_a_worker(ready, name, arguments):
    """No input raises, and none that the host refuses uses a worker."""
    dispatcher, records = ready
    jobs = dispatcher.sandbox.statistics().jobs
    observation = dispatcher.execute(name, arguments)
    assert not observation.ok and observation.receipt is None
    assert dispatcher.sandbox.statistics().jobs == jobs
    assert json.loads(observation.to_json())["ok"] is False
    assert records[-1].correlation_id == observation.correlation_id
    assert "\n" not in records[-1].to_json_line()


def test_exception_never_reaches_the_model(ready):
    """The model reads an id; the record holds type, message and traceback, redacted."""
    dispatcher, records = ready
    observation = dispatcher.execute("fail", '{"text":"password=hunter2 at /srv/app"}')
    shown = observation.to_json() + observation.to_text()
    assert (observation.code, observation.reason) == ("internal_error", "handler_error")
    assert not any(word in shown for word in ("hunter2", "ValueError", "/srv/app", "Traceback"))
    assert "ValueError" in records[-1].exception and "handlers_for_tests" in records[-1].traceback
    assert "hunter2" not in records[-1].to_json_line()


def test_output_is_shown_only_where_asked(ready):
    """What is printed goes to the record, and to the model only with show_output."""
    dispatcher, records = ready
    assert dispatcher.execute("speak", '{"count":1}').to_dict()["output"] == "line 0\nraw\n"
    assert records[-1].output == "line 0\nraw\n"
    assert "output" not in dispatcher.execute("importable", '{"a":1,"b":2}').to_dict()


def test_results_between_the_caps_are_cut_and_beyond_are_refused(ready):
    """Over observation_bytes a result is cut, over result_bytes it is result_limit."""
    cut = ready[0].execute("big", '{"size":100000}')
    assert cut.ok and cut.truncated.total == 100_000 and len(cut.to_json()) <= 16_384
    assert ready[0].execute("big", '{"size":2000000}').reason == "result_limit"


def test_statistics_count_by_tool_code_and_reason(ready):
    """Answers are counted; invented names share one label."""
    dispatcher, _ = ready
    before = dispatcher.statistics()
    dispatcher.execute("importable", "{")
    dispatcher.execute("made_up_1", "{}")
    dispatcher.execute("made_up_2", "{}")
    after = dispatcher.statistics()
    assert after.total == before.total + 3
    assert after.calls[("(unregistered)", "unknown_tool", None)] >= 2
    assert after.calls[("importable", "invalid_json", "syntax")] >= 1


def test_timeout_s_only_shortens(ready):
    """A call's own timeout shortens the limit, and an absurd one is the caller's mistake."""
    dispatcher, records = ready
    began = time.monotonic()
    assert dispatcher.execute("spin", "{}", timeout_s=0.1).code == "timeout"
    assert time.monotonic() - began < 3 and 0.1 <= records[-1].run_s < 0.45
    dispatcher.execute("spin", "{}", timeout_s=60)
    assert 0.5 <= records[-1].run_s < 3
    with pytest.raises(ValueError, match="timeout_s"):
        dispatcher.execute("spin", "{}", timeout_s=0)
    with pytest.raises(TypeError):
        dispatcher.execute("spin", "{}", conversation="later")


def test_batch_answers_every_call_in_order(ready):
    """A batch runs in parallel and answers each call, whatever happens to a sibling."""
    calls = [Call("importable", {"a": n, "b": 0}) for n in range(10)] + [
        ("spin", "{}"),
        ("exit_zero", "{}"),
        ("nobody", "{}"),
        ("fail", "{"),
    ]
    answers = ready[0].execute_batch(calls)
    assert [answer.result for answer in answers[:10]] == list(range(10))
    assert [answer.code for answer in answers[10:]] == ["timeout", "internal_error", "unknown_tool", "invalid_json"]
    assert [a.code for a in asyncio.run(ready[0].execute_batch_async(calls))] == [a.code for a in answers]
    assert ready[0].execute_batch([]) == []
    with pytest.raises(TypeError):
        ready[0].execute_batch(["importable"])


def test_batch_budget_is_one_clock_for_all(engine, nothing_left):
    """Past the budget a running call is a timeout and one that has not started is unavailable/budget."""
    registry = Registry()
    registry.register("sleep", schema_of(), handlers.sleep_forever)
    with Dispatcher(registry, **engine, max_workers=2) as dispatcher:
        dispatcher.execute("sleep", "{}", timeout_s=0.05)
        for run in (dispatcher.execute_batch, lambda *a, **k: asyncio.run(dispatcher.execute_batch_async(*a, **k))):
            began = time.monotonic()
            answers = run([("sleep", "{}")] * 6, budget_s=0.5)
            assert time.monotonic() - began < 4
            assert {(a.code, a.reason) for a in answers} == {("timeout", None), ("unavailable", "budget")}
            assert 1 <= [a.code for a in answers].count("timeout") <= 2


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    when: datetime.datetime


def test_typed_values_arrive_as_their_types(engine, nothing_left):
    """A typed handler gets datetimes, UUIDs, enums, decimals, paths, sets and models, and returns them as JSON."""
    registry = Registry()

    @registry.tool
    def describe(
        when: datetime.datetime,
        key: uuid.UUID,
        colour: Colour,
        price: decimal.Decimal,
        where: Path,
        tags: set[str],
        point: Point,
        ratio: float,
    ) -> list[str]:
        return [type(value).__name__ for value in (when, key, colour, price, where, tags, point, ratio)]

    arguments = {
        "when": "2026-01-02T03:04:05Z",
        "key": "12345678-1234-5678-1234-567812345678",
        "colour": "red",
        "price": "1.50",
        "where": "/a/b",
        "tags": ["a"],
        "point": {"x": 1, "when": "2026-01-02T03:04:05Z"},
        "ratio": 17,
    }
    with Dispatcher(registry, **engine) as dispatcher:
        observation = dispatcher.execute("describe", json.dumps(arguments))
        assert observation.ok, (observation, dispatcher.sandbox.statistics())
        kinds = ["datetime", "UUID", "Colour", "Decimal", "PosixPath", "set", "Point", "float"]
        assert observation.result == kinds


def test_declared_return_type_is_checked(engine, nothing_left):
    """A result of another type than declared is the tool's bug, with the place named."""
    registry = Registry()

    @registry.tool(effect="read")
    def rows(good: bool) -> list[int]:
        return [1, 2] if good else [1, "2"]

    with Dispatcher(registry, **engine) as dispatcher:
        assert dispatcher.execute("rows", '{"good":true}').result == [1, 2]
        bad = dispatcher.execute("rows", '{"good":false}')
        assert (bad.reason, bad.path) == ("bad_result", "/1") and "/1" in bad.hint


def _no_spam(value: str) -> str:
    if "spam" in value:
        raise ValueError("no spam")
    return value.upper()


def test_validators_run_in_the_worker(engine, nothing_left):
    """With validate_in="worker" the model's code runs there; its refusal is invalid_args and the handler never runs."""
    registry = Registry()

    @registry.tool(validate_in="worker")
    def shout(word: Annotated[str, AfterValidator(_no_spam)]) -> str:
        return word

    with Dispatcher(registry, **engine) as dispatcher:
        assert dispatcher.execute("shout", '{"word":"ham"}').result == "HAM"
        refused = dispatcher.execute("shout", '{"word":"spam"}')
        assert (refused.code, refused.path) == ("invalid_args", "/word") and refused.receipt is not None
        assert dispatcher.execute("shout", '{"word":1}').receipt is None
        assert dispatcher.registry.validate("shout", '{"word":"spam"}').ok


def test_reported_errors_follow_the_catalogue(engine, nothing_left):
    """A report of the catalogue is told; one outside it is the tool's bug; other dicts are data."""
    registry = Registry()

    def report(kind):
        if kind == "raise":
            raise ToolError("not_found", "ids look like 17", path="/kind")
        if kind == "return":
            return {"error": "denied", "hint": "not there", "reason": "path"}
        if kind == "unlisted":
            raise ToolError("conflict")
        return {"error": "x", "code": "denied"} if kind == "data" else {"error": "internal_error"}

    registry.register("report", schema_of(kind="string"), report, errors={"not_found": "", "denied": ""})
    with Dispatcher(registry, **engine) as dispatcher:
        told = {
            kind: dispatcher.execute("report", {"kind": kind})
            for kind in ("raise", "return", "unlisted", "data", "forged")
        }
    assert (told["raise"].code, told["raise"].hint, told["raise"].path) == ("not_found", "ids look like 17", "/kind")
    assert (told["return"].code, told["return"].reason) == ("denied", "path")
    assert (told["unlisted"].code, told["unlisted"].reason) == ("internal_error", "unknown_code")
    assert told["data"].result == {"error": "x", "code": "denied"}
    assert (told["forged"].code, told["forged"].reason) == ("internal_error", "unknown_code")


def test_module_that_builds_a_dispatcher_at_import():
    """An application's module-level Dispatcher is inert in its workers: no recursion, and calls are answered."""
    app_for_tests = importlib.import_module("app_for_tests")
    observation = app_for_tests.dispatcher.execute("look", '{"id":"17"}', call_id="c1")
    try:
        assert observation.result == {"id": 17, "call": "c1", "correlation": observation.correlation_id}
        assert app_for_tests.dispatcher.execute("look", '{"id":99}').hint == "ids look like 17"
    finally:
        app_for_tests.dispatcher.close()
    with pytest.raises(DispatcherClosed):
        app_for_tests.dispatcher.execute("look", "{}")


@pytest.mark.parametrize("module", ["hanging_for_tests", "ending_for_tests", "forking_for_tests"])
def test_module_that_cannot_be_loaded_is_out_of_service_alone(engine, module, nothing_left):
    """A module that hangs, ends or forks at import makes its tool unavailable/preload, and no other."""
    registry = Registry()
    registry.register("bad", schema_of(), importlib.import_module(module).handler)
    registry.register("good", schema_of(a="integer", b="integer"), handlers.add)
    records = []
    with Dispatcher(registry, **engine, preload_s=3.0, record=records.append) as dispatcher:
        bad = dispatcher.execute("bad", "{}")
        assert (bad.code, bad.reason, bad.next) == ("unavailable", "preload", "retry")
        assert "import" in records[-1].evidence
        assert dispatcher.execute("good", {"a": 1, "b": 2}).result == 3
        assert dispatcher.execute("bad", "{}").reason == "preload"


@pytest.mark.parametrize(
    "entry", ["broken_for_tests:handler", "no_such_module:handler", "handlers_for_tests:no_such_function"]
)
def test_entry_point_that_fails_at_import(engine, entry, nothing_left):
    """An entry point that cannot be imported is unavailable/preload with the cause in the record."""
    registry = Registry()
    registry.register("bad", OPEN, entry)
    records = []
    with Dispatcher(registry, **engine, record=records.append) as dispatcher:
        assert dispatcher.execute("bad", "{}").reason == "preload"
        assert "Error" in records[-1].evidence


def test_module_that_starts_threads_gets_a_process_a_call(nothing_left, caplog):
    """A handler whose import starts threads is answered by a fresh interpreter for each call, and said loudly."""
    threading_for_tests = importlib.import_module("threading_for_tests")
    registry = Registry()
    registry.register("threads", schema_of(), threading_for_tests.handler)
    registry.register("crash", schema_of(), threading_for_tests.crash)
    with caplog.at_level(logging.WARNING, logger="sandbox"), Dispatcher(registry) as dispatcher:
        answers = [dispatcher.execute("threads", "{}") for _ in range(3)]
        assert [answer.result for answer in answers] == [2, 2, 2], answers[0]
        assert len({answer.receipt.pid for answer in answers}) == 3
        assert {answer.receipt.engine for answer in answers} == {"exec"}
        assert dispatcher.execute("crash", "{}").reason == "worker_crashed"
    assert "starts threads" in caplog.text


def test_threads_of_an_import_stand_behind_the_same_walls(nothing_left):
    """What a module's own threads may do is what its handler may do: nothing more, on every wall."""
    pooled = importlib.import_module("pooled_for_tests")
    names = ["fork", "exec", "tcp", "unix", "bpf", "unshare", "memfd", "chroot", "setuid", "write_root", "mknod"]
    registry = Registry()
    registry.register("try", schema_of(names="array"), pooled.try_everywhere)
    with Dispatcher(registry) as dispatcher:
        answer = dispatcher.execute("try", {"names": names})
        main, pool = answer.result
        assert answer.receipt.engine == "exec" and main == pool
        if answer.receipt.tier in "ABC":
            assert "done" not in pool, dict(zip(names, pool, strict=True))


def test_handler_that_cannot_travel_is_named_at_registration():
    """A captured socket, generator or live Dispatcher raises ValueError naming the object and the remedy."""
    import socket

    generator = (n for n in range(3))
    with socket.socket() as channel, Dispatcher(Registry()) as live:
        for name, captured in (("generator", generator), ("channel", channel), ("live", live)):
            namespace = {}
            exec(f"def make({name}):\n    def handler():\n        return str({name})\n    return handler", namespace)
            with pytest.raises(ValueError, match="cannot") as caught:
                Registry().register("t", schema_of(), namespace["make"](captured))
            assert name in str(caught.value) and "inside the handler" in str(caught.value)


SCRIPT = """
    from dispatcher import Dispatcher, Registry
    print("script runs")
    factor = 3
    registry = Registry()
    def make():
        local = 7
        def closure(n):
            return n * local * factor
        return closure
    class Shape:
        def area(self, n):
            return n * n
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    registry.register("double", schema, lambda n: n * 2)
    registry.register("closure", schema, make())
    registry.register("method", schema, Shape().area)
    dispatcher = Dispatcher(registry)
    for name in registry.names():
        print(dispatcher.execute(name, {"n": 2}).to_text())
"""


@pytest.mark.parametrize("way", ["file", "-c", "stdin", "interactive"])
def test_script_without_a_main_guard_runs_once(way, tmp_path):
    """A script, a -c command, standard input and a REPL need no main guard, and nothing of them runs twice."""
    text = textwrap.dedent(SCRIPT)
    file = tmp_path / "script.py"
    file.write_text(text)
    if way == "interactive":
        text = (
            text.replace("class Shape", "\nclass Shape")
            .replace("schema =", "\nschema =")
            .replace("for name", "\nfor name")
            + "\n\n"
        )
        text = text.replace("    return closure\n", "    return closure\n\n")
    command = {"file": [str(file)], "-c": ["-c", text], "stdin": ["-"], "interactive": ["-i", "-q"]}[way]
    stdin = text if way in ("stdin", "interactive") else ""
    root = str(Path(HERE).parent)
    done = subprocess.run(
        [sys.executable, *command],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": root, "PATH": "/usr/bin:/bin"},
    )
    assert [line for line in done.stdout.splitlines() if line] == ["script runs", "4", "42", "4"], done.stderr


def test_twenty_threads_and_two_hundred_tasks_at_once(engine, nothing_left):
    """Every answer is right with a third of the calls hostile, from threads and from an event loop at once."""
    registry = Registry()
    registry.register("add", schema_of(a="integer", b="integer"), handlers.add)
    registry.register("spin", schema_of(), handlers.spin, limits=Limits(wall_s=0.1, queue_s=60))
    registry.register("crash", schema_of(number="integer"), handlers.crash)
    wrong = []
    tasks, rounds = (200, 12) if "engine" not in engine else (40, 2)  # the portable engine spawns an interpreter a call

    def check(index, answer):
        expected = ("ok", "timeout", "internal_error")[index % 6 if index % 6 < 3 and index % 2 else 0]
        if answer.code != expected or (answer.ok and answer.result != index):
            wrong.append((index, answer))

    def call_of(index):
        if index % 6 == 1:
            return "spin", "{}"
        return ("add", {"a": index, "b": 0})

    with Dispatcher(registry, **engine, limits=Limits(queue_s=60)) as dispatcher:

        def run_thread(start):
            for index in range(start * rounds, (start + 1) * rounds):
                check(index, dispatcher.execute(*call_of(index)))

        async def run_tasks():
            async def one(index):
                check(index, await dispatcher.execute_async(*call_of(index)))

            await asyncio.gather(*[one(index) for index in range(tasks)])

        threads = [threading.Thread(target=run_thread, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        asyncio.run(run_tasks())
        for thread in threads:
            thread.join()
    assert wrong == []


def test_minimum_isolation_is_enforced(engine, ready):
    """A tool that asks for more than the host gives is denied, naming what is missing; a dispatcher refuses to start."""
    from sandbox import SandboxUnavailable, at_least

    tier = ready[0].sandbox.probe.tier
    if at_least(tier, "A"):
        pytest.skip("this host gives everything")
    registry = Registry()
    registry.register("strict", schema_of(), handlers.exit_zero, isolation="A")
    with Dispatcher(registry, **engine) as dispatcher:
        answer = dispatcher.execute("strict", "{}")
        assert (answer.code, answer.reason, answer.next, answer.receipt) == ("denied", "isolation", "stop", None)
        assert "cgroup" in answer.hint
    with pytest.raises(SandboxUnavailable, match="cgroup"):
        Dispatcher(registry, isolation="A")


def test_sink_that_raises_breaks_no_call(caplog):
    """A record sink's failure is logged, and the call is answered."""

    def sink(record):
        raise RuntimeError("full")

    registry = Registry()
    registry.register("add", schema_of(a="integer", b="integer"), handlers.add)
    with Dispatcher(registry, record=sink) as dispatcher:
        assert dispatcher.execute("add", {"a": 1, "b": 2}).ok
    assert "record sink failed" in caplog.text


def test_a_late_import_needs_a_preload(engine, nothing_left):
    """What a handler imports in the call is read by nobody behind the walls: the record names the remedy, and it helps."""
    registry = Registry()
    registry.register("late", schema_of(), importlib.import_module("lazy_for_tests").late)
    records = []
    with Dispatcher(registry, **engine, record=records.append) as dispatcher:
        answer = dispatcher.execute("late", "{}")
        if answer.receipt.tier in "ABC":
            assert answer.reason == "handler_error" and records[-1].grant == "preload=('results_for_tests',)"
    with Dispatcher(registry, **engine, preload=["results_for_tests"]) as dispatcher:
        assert dispatcher.execute("late", "{}").result == [1]


def test_bugs_are_logged_louder_than_answers(engine, nothing_left, caplog):
    """The default sink logs at INFO, and what a person must mend at WARNING, one line each."""
    registry = Registry()
    registry.register("add", schema_of(a="integer", b="integer"), handlers.add)
    registry.register("broken", OPEN, "no_such_module:handler")
    registry.register("bug", OPEN, lambda **arguments: 1 / 0)
    with caplog.at_level(logging.INFO), Dispatcher(registry, **engine) as dispatcher:
        dispatcher.execute("add", {"a": 1, "b": 2})
        dispatcher.execute("add", {"a": "x"})
        dispatcher.execute("bug", {})
        dispatcher.execute("broken", {})
    told = [(entry.levelname, json.loads(entry.message)["code"]) for entry in caplog.records if entry.name == "dispatcher.calls"]
    assert told == [("INFO", "ok"), ("INFO", "invalid_args"), ("WARNING", "internal_error"), ("WARNING", "unavailable")]
    assert any("cannot be used" in entry.message for entry in caplog.records if entry.name == "sandbox")


def test_decorated_tools_of_a_module_travel_by_name(engine, nothing_left):
    """A tool that is decorated in an importable module is imported by its workers, with all that stands below it."""
    registry = importlib.import_module("decorated_for_tests").registry
    with Dispatcher(registry, **engine) as dispatcher:
        answers = {name: dispatcher.execute(name, {"n": 5}).result for name in registry.names()}
    assert answers == {"fact": 120, "uses": 6, "look": 7, "wrapped": 5}
    kinds = {tool.name: tool.handler.kind for tool in registry}
    assert kinds == {"fact": "import", "uses": "import", "look": "import", "wrapped": "value"}


class Aliased(BaseModel):
    user_id: int = Field(alias="userId")


def test_a_model_with_aliases_is_a_result(engine, nothing_left):
    """A returned model is read by its fields' names, and held against the declared type so."""
    registry = Registry()

    @registry.tool
    def give() -> Aliased:
        return Aliased(userId=5)

    @registry.tool
    def wrong() -> Aliased:
        return {"other": 5}

    records = []
    with Dispatcher(registry, **engine, record=records.append) as dispatcher:
        assert dispatcher.execute("give").result == {"user_id": 5}
        assert dispatcher.execute("wrong").reason == "bad_result"
        assert "declared return type" in records[-1].evidence


def test_a_cancelled_call_is_recorded_and_counted(engine, nothing_left):
    """A call that its caller gave up has a record, and stands in the statistics as cancelled."""
    registry = Registry()
    registry.register("sleep", schema_of(), handlers.sleep_forever)
    registry.register("add", schema_of(a="integer", b="integer"), handlers.add)
    records = []

    async def main():
        async with Dispatcher(registry, **engine, record=records.append) as dispatcher:
            assert (await dispatcher.execute_async("add", {"a": 1, "b": 2})).result == 3
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await dispatcher.execute_async("sleep", {})
            assert (await dispatcher.execute_async("add", {"a": 1, "b": 2})).result == 3
            return dispatcher.statistics()

    statistics = asyncio.run(main())
    assert [record.code for record in records] == ["ok", "cancelled", "ok"]
    assert statistics.calls[("sleep", "cancelled", None)] == 1


def test_what_is_no_dict_is_named_by_its_type(ready):
    """An argument object of another type is refused by its Python type's name, not as an object."""
    text = ready[0].execute("importable", types.MappingProxyType({"a": 1})).to_text()
    assert "a Python mappingproxy" in text
    assert str(ready[0].execute("importable", "[]")).startswith("Error: arguments must be a JSON object")


def test_an_exposed_exception_is_in_every_form():
    """With expose_exceptions the exception stands in the dict as well as in the text."""
    registry = Registry()
    registry.register("fail", schema_of(text="string"), handlers.fail)
    with pytest.warns(UserWarning), Dispatcher(registry, expose_exceptions=True) as dispatcher:
        answer = dispatcher.execute("fail", {"text": "no data"})
    assert "no data" in answer.to_text() and "no data" in answer.to_json()


FORGED = [
    {"failure": {"kind": "bad_result", "path": "sk-abcdefghijklmnopqrstuvwxyz012345 my words"}},
    {"failure": {"kind": "bad_result", "path": 5, "hint": []}},
    {"failure": {"kind": "error", "type": "\x1b\u202e", "message": ["x"], "traceback": {}, "grant": 5}},
    {"ok": {"invalid": [{"path": "/a", "keyword": "sk-abcdefghijklmnopqrstuvwxyz0123456\x1b", "message": "m"}]}},
    {"ok": {"invalid": [{"path": "no pointer", "keyword": "type", "message": "m"}]}},
    {"ok": {"invalid": [{"path": "/\ud800", "keyword": "type", "message": "\x00" * 5000, "expected": [[1]]}] * 100}},
    {"ok": {"report": {"error": ["not_found"]}}},
    {"ok": {"report": {"error": "denied", "reason": {}, "path": "x", "field": [], "retry_after": 10**400}}},
    {"ok": {"result": [[[]]], "report": {}}},
    {"ok": 5},
]


def passing(value: str) -> str:
    return value


@pytest.mark.parametrize("body", FORGED, ids=lambda body: json.dumps(body)[:50])
def test_a_forged_answer_is_answered(body, nothing_left):
    """Whatever a worker claims, every way of calling answers, clean and bounded, with a record; siblings are unhurt."""
    registry = Registry()

    @registry.tool(validate_in="worker", errors={"denied": "no"})
    def forge(body: Annotated[str, AfterValidator(passing)]) -> Any:
        return handlers.write_reply(body)

    registry.register("add", schema_of(a="integer", b="integer"), handlers.add)
    records = []
    data = json.dumps(body).encode().hex()
    with Dispatcher(registry, record=records.append) as dispatcher:
        answers = dispatcher.execute_batch([("add", {"a": 1, "b": 2}), ("forge", {"body": data}), ("add", {"a": 2, "b": 2})])
        answers.append(asyncio.run(dispatcher.execute_async("forge", {"body": data})))
    assert [answer.result for answer in answers[::2]] == [3, 4] and len(records) == 4
    for answer in answers[1::2]:
        text = answer.to_json()
        assert not answer.ok and len(text.encode()) <= 2048 and "abcdefghijklmnop" not in text
        assert answer.to_text().isprintable() and (answer.keyword or "x").isalpha()


def test_a_caller_deep_in_the_stack_is_answered(ready):
    """Where no stack is left to render a deep result, the answer is internal_error: execute never raises."""
    registry = Registry()
    registry.register("deep", {"type": "object", "properties": {}}, importlib.import_module("results_for_tests").deepest)

    def at(depth, function):
        return function() if depth == 0 else at(depth - 1, function)

    with Dispatcher(registry) as dispatcher:
        assert dispatcher.execute("deep", "{}").ok
        left = sys.getrecursionlimit() - len(inspect.stack())
        codes = {at(left - spare, lambda: dispatcher.execute("deep", "{}")).code for spare in range(150, 500, 50)}
    assert codes <= {"ok", "internal_error"}


def test_redaction_comes_before_any_cut(ready):
    """A credential that a cap would cut in two is not shown by half."""
    url = "postgres://svc:hunter2-correct-horse@db.internal/prod"
    keep = len("postgres://svc:hunter2-correct-horse")
    registry = Registry()

    @registry.tool(errors={"unavailable": "", "denied": ""})
    def hint(size: int) -> str:
        raise ToolError("unavailable", hint="x" * (size - keep) + " " + url)

    @registry.tool(show_output=True, limits=Limits(output_bytes=500))
    def printed() -> int:
        print("x" * (499 - keep) + " " + url)
        return 1

    @registry.tool(errors={"denied": ""})
    def header() -> str:
        raise ToolError("denied", hint="Authorization: Token 0123456789abcdef0123; secret_key=wJalrXUtnFEMI; session_id=99887766")

    records = []
    with Dispatcher(registry, record=records.append) as dispatcher:
        for size in (200, 999, 1000, 1199, 1200, 16_383):
            assert "hunter2" not in dispatcher.execute("hint", {"size": size}).to_json()
        assert "hunter2" not in dispatcher.execute("printed").to_json()
        text = dispatcher.execute("header").to_json()
    assert not any(secret in text for secret in ("0123456789abcdef", "wJalrXUtnFEMI", "99887766"))
    assert "hunter2" not in json.dumps([record.to_dict() for record in records])

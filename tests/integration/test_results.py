"""Results: what a handler may return, and where it is told that it may not (C27, C30)."""

import pytest
import results_for_tests as results

from dispatcher import Dispatcher, Limits, Registry

SCHEMA = {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}}


@pytest.fixture(scope="module")
def ready(engine):
    registry = Registry()
    registry.register("give", SCHEMA, results.give, limits=Limits(queue_s=60))
    registry.register("endless", {"type": "object", "properties": {}}, results.endless, limits=Limits(queue_s=60))
    records = []
    with Dispatcher(registry, **engine, record=records.append) as dispatcher:
        yield dispatcher, records


@pytest.mark.parametrize("kind", results.GOOD)
def test_what_is_json_or_becomes_it(ready, kind):
    """JSON values pass, builtin subclasses by the base type's own methods, and the types that C30 names are converted."""
    observation = ready[0].execute("give", {"kind": kind})
    assert observation.ok, observation
    expected = results.GOOD[kind][1]
    if kind != "deep_data":
        assert observation.result == expected and type(observation.result) is type(expected)


@pytest.mark.parametrize("kind", results.BAD)
def test_what_is_not_json_is_told_with_its_place(ready, kind):
    """Everything else is bad_result, with the pointer into the result itself."""
    observation = ready[0].execute("give", {"kind": kind})
    path = results.BAD[kind][1]
    assert (observation.code, observation.reason) == ("internal_error", "bad_result")
    told = observation.path or ""
    assert told == path or ("deep" in kind and path.startswith(told.rstrip("…")))  # a long pointer is cut
    assert "cannot be written as JSON" in observation.hint
    assert len(observation.to_json()) < 2048
    if kind == "numpy":
        assert ".item()" in ready[1][-1].evidence


def test_an_endless_generator_stops_at_the_limit(ready):
    """A generator is read to a list until the result is over its bytes."""
    assert ready[0].execute("endless", "{}").reason == "result_limit"

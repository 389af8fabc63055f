"""What a handler reports is untrusted: every field of every type is answered, bounded and clean (C24, C25, C28)."""

import itertools
import json

import pytest

from dispatcher.errors import ErrorSpec, report_of, resolve_report
from dispatcher.facts import CallFacts, ToolFacts
from dispatcher.observation import render_fault

ERRORS = {code: ErrorSpec("a hint") for code in ("not_found", "denied", "rate_limited", "unavailable", "timeout")}
TOOL = ToolFacts(name="t", schema={"type": "object"}, effect="read", errors=ERRORS)
CALL = CallFacts(name="t", correlation_id="c-abcdefghij234567")
ODD = [
    None, True, 0, -5, 1.5, 10**400, float("inf"), float("nan"), "", "abc", "/a~2/b", "/" + "x" * 100_000, "\x00\u202e\n",
    "Bearer abcdefghijklmnop123456", ["x"], {"a": {"b": "y" * 10_000}}, [[]] * 1000, "😀" * 5000, "\\" * 5000, '"' * 5000,
]  # fmt: skip
FIELDS = ("hint", "reason", "field", "path", "got", "retry_after", "required_permission")


@pytest.mark.parametrize("code", ERRORS)
@pytest.mark.parametrize("field", FIELDS)
def test_any_value_in_any_field_is_answered(code, field):
    """The answer is JSON and text of at most 2 KiB each, in one line, without control characters or credentials."""
    for value, other in itertools.product(ODD, (None, "/" + "p" * 3000)):
        report = {"error": code, field: value} | ({"path": other} if other and field != "path" else {})
        assert report_of(report) is report
        observation = render_fault(resolve_report(report, ERRORS, "read"), call=CALL, tool=TOOL)
        text = observation.to_json()
        assert json.loads(text)["error"] == code
        assert max(len(text.encode()), len(observation.to_text().encode())) <= 2048
        assert observation.to_text().isprintable() and "abcdefghijklmnop1" not in text


@pytest.mark.parametrize("error", [None, 5, [], ["not_found"], {"a": 1}, "nonsense", "ok", "NOT_FOUND"])
def test_a_dict_that_is_no_report_is_data(error):
    """Only a code of the closed list makes a report, and only with the keys of one."""
    assert report_of({"error": error}) is None
    assert report_of({"error": "not_found", "extra": 1}) is None


def test_a_wait_is_bounded():
    """retry_after is a number of seconds between none and a day; anything else is left out."""
    waits = [resolve_report({"error": "rate_limited", "retry_after": v}, ERRORS, "read").retry_after for v in ODD[:8]]
    assert waits == [None, None, 0.0, 0.0, 1.5, 86_400.0, 86_400.0, None]

"""The text table: each row with its exact text (C22), and the caps of errors (C24)."""

import json

import pytest

from dispatcher.errors import ErrorSpec
from dispatcher.facts import CallFacts, ToolFacts
from dispatcher.faults import Fault, Problem
from dispatcher.observation import ERROR_BYTES, render_fault, render_success

CALL = CallFacts(name="get_forecast", correlation_id="c-abcdefghij234567", wall_s=2)
SCHEMA = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string", "examples": ["Pune"]}}}
READ = ToolFacts(name="get_weather", schema=SCHEMA, effect="read", errors={"not_found": ErrorSpec("x")})
WRITE = ToolFacts(name="get_weather", schema=SCHEMA, effect="write")
MISSING_CITY = Problem(path="/city", keyword="required", message="Field required")
ARRAY = Problem(path="", keyword="type", message="Input should be a valid dictionary", expected="object", got=[1])
UNITS = Problem(path="/units", keyword="additionalProperties", message="Extra inputs are not permitted", got="C")
RESULT = Fault(
    code="internal_error", reason="bad_result", path="/rows/3", hint="Its result at /rows/3 cannot be written as JSON"
)
BROKEN = Fault(code="internal_error", reason="handler_error")
EXPOSED = Fault(code="internal_error", reason="handler_error", exposed="KeyError: 'no data for Atlantis'")
SYNTAX = Fault(code="invalid_json", reason="syntax", hint="Expecting value")


@pytest.mark.parametrize(
    ("fault", "tool", "text"),
    [
        (
            Fault(code="unknown_tool"),
            None,
            "Error: unknown tool 'get_forecast'. Available tools: get_weather, calculate.",
        ),
        (SYNTAX, READ, "Error: arguments are not valid JSON (Expecting value)."),
        (
            Fault(code="invalid_args", problems=(ARRAY,)),
            READ,
            'Error: arguments must be a JSON object such as {"city": "Pune"}, not an array.',
        ),
        (Fault(code="invalid_args", problems=(MISSING_CITY,)), READ, "Error: invalid arguments: city: Field required."),
        (
            Fault(code="invalid_args", problems=(UNITS,)),
            READ,
            "Error: invalid arguments: units: Extra inputs are not permitted.",
        ),
        (
            Fault(code="invalid_args", problems=(MISSING_CITY, UNITS)),
            READ,
            "Error: invalid arguments: city: Field required; units: Extra inputs are not permitted.",
        ),
        (
            BROKEN,
            READ,
            "Error: the tool failed (internal_error, id c-abcdefghij234567). Try later or continue without it.",
        ),
        (
            BROKEN,
            WRITE,
            "Error: the tool failed (internal_error, id c-abcdefghij234567). It may have happened; do not repeat it.",
        ),
        (
            RESULT,
            READ,
            "Error: the tool failed (internal_error, id c-abcdefghij234567). Its result at /rows/3 cannot be written as JSON.",
        ),
        (EXPOSED, READ, "Error: the tool failed (KeyError: 'no data for Atlantis')."),
        (Fault(code="timeout"), READ, "Error: the tool timed out after 2 s (timeout, id c-abcdefghij234567)."),
        (
            Fault(code="timeout"),
            WRITE,
            "Error: the tool timed out after 2 s (timeout, id c-abcdefghij234567). It may have happened; do not repeat it.",
        ),
        (Fault(code="not_found", hint="job ids look like 17"), READ, "Error: job ids look like 17 (not_found)."),
        (
            Fault(code="unavailable", reason="overloaded", hint="Busy"),
            READ,
            "Error: Busy (unavailable, id c-abcdefghij234567).",
        ),
    ],
)
def test_row_of_the_text_table(fault, tool, text):
    """The text form of each kind of problem reads exactly as the contract has it."""
    names = ["get_weather", "calculate"]
    assert render_fault(fault, call=CALL, tool=tool, names=names).to_text() == text


def test_a_huge_result_says_how_much_is_missing():
    """A result over the cap is cut on a character, and the text form says how many characters are missing."""
    shown = render_success("é" * 10_000, call=CALL, cap_bytes=16_384)
    assert shown.truncated.total == 10_000
    more = 10_000 - shown.truncated.shown
    assert shown.to_text() == "é" * shown.truncated.shown + f"... [truncated, {more} more characters]"
    assert len(shown.to_json().encode()) <= 16_384 and len(shown.to_text().encode()) <= 16_384
    assert json.loads(shown.to_json())["truncated"] == {"shown": shown.truncated.shown, "total": 10_000, "of": "string"}


@pytest.mark.parametrize(
    "result", ["\x00" * 50_000, '"' * 50_000, ["\u2028" * 9, {"k": "\U0001f600" * 40_000}], list(range(20_000))]
)
def test_every_success_fits_its_cap(result):
    """Both forms fit the cap however much escaping costs, and the JSON is valid."""
    shown = render_success(result, call=CALL, cap_bytes=4_096, output="o" * 9_000)
    assert len(shown.to_json().encode()) <= 4_096 and len(shown.to_text().encode()) <= 4_096
    assert json.loads(shown.to_json())["ok"] is True


@pytest.mark.parametrize("filler", ["x" * 5_000, "\x1b" * 5_000, "é" * 5_000, "\U0001f600" * 5_000, "a/b~" * 900])
def test_every_error_fits_two_kib(filler):
    """An error fits 2 KiB whatever it quotes; code, keyword and id are whole."""
    problems = tuple(
        Problem(path=f"/{filler}/{index}", keyword="enum", message=filler, expected=[filler] * 20, got=filler)
        for index in range(40)
    )
    shown = render_fault(Fault(code="invalid_args", problems=problems), call=CALL, tool=READ)
    assert len(shown.to_json().encode()) <= ERROR_BYTES and len(shown.to_text().encode()) <= ERROR_BYTES
    told = json.loads(shown.to_json())
    assert (told["error"], told["keyword"], told["more"]) == ("invalid_args", "enum", 40 - len(told["errors"]))


def test_keys_of_an_error_are_the_contract_s():
    """An error shows no key beside those of C21."""
    allowed = {"ok", "error", "hint", "next", "reason", "field", "path", "keyword", "errors", "more", "got"}
    allowed |= {"retry_after", "required_permission", "approval_id", "correlation_id"}
    for code in ("timeout", "internal_error", "unavailable", "denied", "not_found", "invalid_json"):
        shown = render_fault(Fault(code=code), call=CALL, tool=READ).to_dict()
        assert set(shown) <= allowed
        assert ("correlation_id" in shown) == (code in ("timeout", "internal_error", "unavailable"))

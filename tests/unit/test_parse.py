"""The strict parser: reasons, their precedence, numbers, and hostile input (C6 to C10)."""

import enum
import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.faults import Reject
from dispatcher.parse import parse_arguments


def reason_of(raw, **options):
    """Return the code and reason that refuse `raw`."""
    with pytest.raises(Reject) as caught:
        parse_arguments(raw, **options)
    return caught.value.fault.reason or caught.value.fault.code


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ('{"a":', "syntax"),
        ("\ufeff{}", "syntax"),
        ("```json\n{}\n```", "syntax"),
        ("// x\n{}", "syntax"),
        ('{"a":1,}', "syntax"),
        ('{"a":True}', "syntax"),
        ('{"a":01}', "syntax"),
        ("{} {}", "trailing_data"),
        ("{}\n```", "trailing_data"),
        ('{"a":' + "9" * 401 + "}", "number_size"),
        ('{"a":-Infinity}', "non_finite"),
        ('{"a":1e400}', "non_finite"),
        ('{"a":"\\ud800"}', "surrogate"),
        ('{"a":"\\ud83d\\ude00","a":1}', "duplicate_key"),
        ("[" * 65 + "]" * 65, "depth"),
        ("[" * 60_000, "depth"),
        ('{"a":"' + "x" * 70_000 + '"}', "size"),
        (b"\xff\xfe{\x00}\x00", "syntax"),
        ('{"a":NaN,"b":"\\ud800","a":1} x', "trailing_data"),
        ('{"a":"\\ud800","a":1}', "surrogate"),
        ('{"a":NaN,"a":' + "1" * 401 + "}", "number_size"),
        ("[" * 70, "depth"),
        ("x" * 70_000, "size"),
        ("null", "invalid_args"),
        ('"{}"', "invalid_args"),
        (None, "invalid_args"),
        (17, "invalid_args"),
    ],
)
def test_reason(raw, reason):
    """Each fault has its reason, and of several the first in the list is told."""
    assert reason_of(raw) == reason


def test_size_is_counted_in_utf8_bytes():
    """65,536 bytes pass and one more does not, whatever the characters."""
    body = '{"a":"' + "é" * ((65_536 - 8) // 2) + '"}'
    assert len(body.encode()) == 65_536
    assert parse_arguments(body)
    assert reason_of(body + " ") == "size"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17.0", 17),
        ("1e1", 10),
        ("1e23", 10**23),
        ("-5.0", -5),
        ("0.0", 0),
        ("1.5e1", 15),
        ("100e-2", 1),
        ("1e308", 10**308),
    ],
)
def test_whole_numbers_arrive_as_int(text, value):
    """A number whose exact decimal value is integral is that int."""
    parsed = parse_arguments(f'{{"n":{text}}}')["n"]
    assert (type(parsed), parsed) == (int, value)


@pytest.mark.parametrize("text", ["1.0000000000000000000001", "-0.0", "0.5", "1e-400", "17.5"])
def test_other_numbers_stay_float(text):
    """What is not exactly integral, and minus zero, stays a float."""
    parsed = parse_arguments(f'{{"n":{text}}}')["n"]
    assert type(parsed) is float
    assert text != "-0.0" or math.copysign(1, parsed) == -1


@pytest.mark.parametrize(
    "hostile",
    [
        "[" * 5_000_000,
        '{"a":' * 1_000_000,
        "9" * 5_000_000,
        '{"a":' + "9" * 60_000 + "}",
        '"' * 60_000,
        '{"a":1e-999999999}',
    ],
)
def test_hostile_text_is_answered_at_once(hostile):
    """Nesting, digits and length cost no time and raise nothing but a rejection."""
    began = time.monotonic()
    try:
        parse_arguments(hostile)
    except Reject:
        pass
    assert time.monotonic() - began < 2


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize("value", [Colour.RED, (1,), {1}, b"x", object(), type("S", (str,), {})("x")])
def test_given_dict_takes_exact_types_only(value):
    """A value of any other type than JSON's own is refused at its path."""
    with pytest.raises(Reject) as caught:
        parse_arguments({"a": [value]})
    assert [(p.path, p.keyword) for p in caught.value.fault.problems] == [("/a/0", "type")]


def test_given_dict_is_copied():
    """The caller's dict is neither kept nor changed."""
    given_arguments = {"a": [1, {"b": 2.0}]}
    parsed = parse_arguments(given_arguments)
    assert parsed == given_arguments and type(parsed["a"][1]["b"]) is int
    assert type(given_arguments["a"][1]["b"]) is float and parsed["a"] is not given_arguments["a"]


def test_given_dict_with_a_circle_is_refused():
    """A dict that holds itself is too deep, not an endless walk."""
    circle = {}
    circle["a"] = circle
    assert reason_of(circle) == "depth"


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text):
    """No text raises anything but a rejection, and what is accepted is what the standard parser reads."""
    try:
        parsed = parse_arguments(text)
    except Reject:
        return
    assert parsed == ({} if not text.strip() else json.loads(text))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_valid_json_is_accepted(value):
    """A document of valid JSON values comes back equal."""
    text = json.dumps({"value": value})
    if len(text) <= 65_536 and "\\ud8" not in text:
        assert parse_arguments(text) == {"value": value}

"""One strict parser from untrusted text to an arguments dict (C6 to C10). Nothing is repaired, unwrapped or guessed.

Reasons, the first that applies: size, depth, syntax, trailing_data, number_size, non_finite, surrogate, duplicate_key.
"""

import json
import math
import re
from decimal import Decimal
from typing import Any

from dispatcher.faults import Fault, Problem, Reject
from dispatcher.given import check_given
from dispatcher.invalid_json import DEFAULT_BYTES, MAX_DEPTH, MAX_DIGITS, PHRASES, invalid_json

# The standard library's fixed messages, each with our own fixed phrase, whatever the Python version says.
_FAULTS = (
    ("Expecting value", "Expecting value"),
    ("Expecting property name", "Expecting a property name in double quotes"),
    ("Illegal trailing comma", "Trailing comma"),
    ("Expecting ':'", "Expecting ':' after a property name"),
    ("Expecting ','", "Expecting ',' or the end"),
    ("Unterminated string", "Unterminated string"),
    ("Invalid control character", "Control character in a string"),
    ("Invalid \\", "Invalid escape in a string"),
)
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_OTHER = re.compile(r"[^\[\]{}]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WHITESPACE = " \t\n\r"
_TRAILING_COMMA = re.compile(r",\s*[\]}]")


def parse_arguments(raw: object, *, limit_bytes: int = DEFAULT_BYTES) -> dict[str, Any]:
    """Return the arguments object in `raw`: text, UTF-8 bytes, or a dict (copied). Raises `Reject`.

    A number whose exact value is integral arrives as `int` (C9). Empty or blank text means `{}`.
    """
    if isinstance(raw, str):
        return _require_object(parse_json(raw, limit_bytes=limit_bytes, blank={}))
    if isinstance(raw, bytes | bytearray):
        return parse_arguments(_decode(bytes(raw), limit_bytes), limit_bytes=limit_bytes)
    if type(raw) is not dict:
        raise _not_an_object(raw)
    return check_given(raw, limit_bytes)


def parse_json(text: str, *, limit_bytes: int, blank: Any = None) -> Any:
    """Return the JSON value in `text`; `blank` for blank text. Raises `Reject` with `invalid_json`."""
    if len(text) > limit_bytes or (len(text) * 4 > limit_bytes and _size(text) > limit_bytes):
        raise invalid_json("size")
    if not text.strip(_WHITESPACE) and blank is not None:
        return blank
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(text)
    notes: list[str] = []
    value, end = _scan(text, notes)
    _check_rest(text, end)
    if ("\\u" in text or not text.isascii()) and _has_surrogate(value):
        notes.append("surrogate")
    for reason in ("number_size", "non_finite", "surrogate", "duplicate_key"):
        if reason in notes:
            raise invalid_json(reason)
    return value


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _decode(data: bytes, limit_bytes: int) -> str:
    if len(data) > limit_bytes:
        raise invalid_json("size")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise invalid_json("syntax", "The bytes are not UTF-8") from None


def _check_depth(text: str) -> None:
    brackets = _OTHER.sub("", _STRING.sub("", text))
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise invalid_json("depth")


def _scan(text: str, notes: list[str]) -> tuple[Any, int]:
    start = len(text) - len(text.lstrip(_WHITESPACE))
    if text.startswith("\ufeff"):
        raise invalid_json("syntax", "A byte order mark before the value")
    decoder = json.JSONDecoder(
        object_pairs_hook=_Pairs(notes),
        parse_int=_Integers(notes),
        parse_float=_Floats(notes),
        parse_constant=_Constants(notes),
    )
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise invalid_json("syntax", _phrase(error, text)) from None
    except RecursionError:
        raise invalid_json("depth") from None


def _phrase(error: json.JSONDecodeError, text: str) -> str:
    if _TRAILING_COMMA.match(text, error.pos) or _TRAILING_COMMA.match(text, max(0, error.pos - 1)):
        return "Trailing comma"
    for start, phrase in _FAULTS:
        if error.msg.startswith(start):
            return phrase
    return PHRASES["syntax"]


def _check_rest(text: str, end: int) -> None:
    if text[end:].strip(_WHITESPACE):
        raise invalid_json("trailing_data")


def _has_surrogate(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _SURROGATE.search(item):
                return True
        elif isinstance(item, list):
            stack += item
        elif isinstance(item, dict):
            stack += item.keys()
            stack += item.values()
    return False


class _Pairs:
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            self._notes.append("duplicate_key")
            if any(_has_surrogate(key) or _has_surrogate(item) for key, item in pairs):
                self._notes.append("surrogate")  # the overwritten value is seen nowhere else
        return value


class _Integers:
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def __call__(self, text: str) -> int:
        if len(text.lstrip("-")) > MAX_DIGITS:
            self._notes.append("number_size")
            return 0
        return int(text)


class _Floats:
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def __call__(self, text: str) -> int | float:
        mantissa, _, exponent = text.lower().partition("e")
        if len(mantissa.lstrip("-").replace(".", "")) + len(exponent.lstrip("+-")) > MAX_DIGITS:
            self._notes.append("number_size")
            return 0
        value = float(text)
        if not math.isfinite(value):
            self._notes.append("non_finite")
            return 0
        if value == 0 and text.startswith("-"):
            return value
        return _whole(text, value)


def _whole(text: str, value: float) -> int | float:
    """Return the int that the text stands for if its exact decimal value is integral, else the float (C9)."""
    if value != 0 and abs(value) < 0.5:
        return value
    if value == 0 and not _is_exact_zero(text):
        return value
    exact = Decimal(text) if value else Decimal(0)
    return int(exact) if exact == exact.to_integral_value() else value


def _is_exact_zero(text: str) -> bool:
    return not text.lower().partition("e")[0].strip("-0.")


class _Constants:
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def __call__(self, name: str) -> int:
        self._notes.append("non_finite")
        return 0


def _require_object(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _not_an_object(value)


def _not_an_object(value: object) -> Reject:
    hint = ""
    if isinstance(value, str) and value.lstrip(_WHITESPACE).startswith("{"):
        hint = "The arguments are JSON text inside a JSON string: send the object itself, encoded once"
    problem = Problem(
        path="", keyword="type", message="Input should be a valid dictionary", expected="object", got=value
    )
    return Reject(Fault(code="invalid_args", problems=(problem,), hint=hint))

"""Caps: nothing the model reads is longer than it may be, and no cut falls inside a character (C24, C25)."""

import json
import math
import unicodedata
from typing import Any

GOT_CHARACTERS = 64
SEGMENT_CHARACTERS = 64
PATH_CHARACTERS = 200


def to_json_text(value: Any) -> str:
    """Return compact JSON without ASCII escapes; what is not JSON is written as its type's name, never an error."""
    try:
        return json.dumps(clean(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return json.dumps(f"<{type(value).__name__}>")


def clean(value: Any) -> Any:
    """Return a JSON value whose strings hold no lone surrogate and whose numbers are finite."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def json_size(text: str) -> int:
    """Return how many UTF-8 bytes `text` takes as a JSON string's inside."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2


def longest_prefix(text: str, room: int) -> int:
    """Return how many characters of `text` fit `room` bytes both plainly and inside a JSON string, by bisection."""
    low, high = 0, min(len(text), max(0, room))
    while low < high:
        middle = (low + high + 1) // 2
        if json_size(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def show(value: Any) -> str:
    """Return at most 64 characters of an offending value, control characters escaped; bounded work on any size."""
    text = value[: GOT_CHARACTERS + 1] if isinstance(value, str) else _peek(value)
    escaped = "".join(_escape(character) for character in text[: GOT_CHARACTERS + 1])
    return escaped if len(escaped) <= GOT_CHARACTERS else escaped[: GOT_CHARACTERS - 1] + "…"


def _peek(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 400:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value) if not isinstance(value, float) or math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return _peek_items("{", "}", [f"{json.dumps(str(k)[:32])}: {_brief(v)}" for k, v in _first(value.items())])
    if isinstance(value, list | tuple):
        return _peek_items("[", "]", [_brief(item) for item in _first(value)])
    return f"<{type(value).__name__}>"


def _first(items: Any) -> list[Any]:
    return [item for item, _ in zip(items, range(8), strict=False)]


def _brief(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value[:32], ensure_ascii=False)
    return "{…}" if isinstance(value, dict) else "[…]" if isinstance(value, list | tuple) else _peek(value)


def _peek_items(opening: str, closing: str, items: list[str]) -> str:
    return opening + ", ".join(items) + closing


def _escape(character: str) -> str:
    if character.isprintable() and unicodedata.category(character) not in ("Cf", "Cs", "Co", "Cn"):
        return character
    return character.encode("unicode_escape").decode("ascii")


def escape_controls(text: str) -> str:
    """Return `text` with control, bidirectional and unprintable characters escaped."""
    return text if text.isascii() and text.isprintable() else "".join(_escape(character) for character in text)


def shorten_path(path: str, limit: int = PATH_CHARACTERS) -> str:
    """Return a pointer of at most about `limit` characters, segments of at most 64, control characters escaped."""
    if len(path) <= SEGMENT_CHARACTERS and path.isprintable():
        return path
    parts = [_shorten_segment(part) for part in path[: 50 * limit].split("/")]
    shown: list[str] = []
    length = 0
    for part in parts:
        length += len(part) + 1
        if length > limit and len(shown) > 1:
            return "/".join([*shown, "…"])
        shown.append(part)
    return "/".join(shown)


def _shorten_segment(part: str) -> str:
    text = escape_controls(part[: SEGMENT_CHARACTERS + 1])
    return text if len(text) <= SEGMENT_CHARACTERS else text[: SEGMENT_CHARACTERS - 1] + "…"

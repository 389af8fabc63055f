"""Decode what a worker sent: JSON and nothing else, budgeted before it grows.

JSON grows 9 to 25 times in memory when decoded, so depth and the number of values are counted by a linear scan first.
No other decoder may ever stand on this path (guarantee G4).
"""

import json
import math
import re
from itertools import accumulate
from typing import Any

from sandbox.wire import ProtocolViolation

MAX_DEPTH = 160  # results may be 128 deep (C30); the envelope and an adapter add theirs
MAX_NODES = 2_000_000
_QUICK_BYTES = 64 * 1024

# One that is not closed is taken to the end: tried again from each of its quotes, it would take quadratic time.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_STEPS = [0] * 256
for _byte in b"[{":
    _STEPS[_byte] = 1
for _byte in b"]}":
    _STEPS[_byte] = -1
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def decode(body: bytes) -> Any:
    """Return the JSON value in `body`; raise `ProtocolViolation` for anything else or anything over budget."""
    check_budget(body)
    try:
        value = _DECODER.decode(body.decode("utf-8"))
        if b"\\u" in body:  # an escape may stand for half a surrogate pair, which is no text
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation("a frame that is not JSON") from error
    return value


def check_budget(body: bytes) -> None:
    """Raise `ProtocolViolation` when `body` nests or holds more than the host will decode. Linear in its length."""
    opened = body.count(b"[") + body.count(b"{")
    if opened <= MAX_DEPTH and len(body) <= _QUICK_BYTES:
        return
    bare = _STRING.sub(b"", body)
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MAX_NODES:
        raise ProtocolViolation("a frame of too many values")
    brackets = bare.translate(None, _NOT_BRACKETS)
    if brackets and max(accumulate(map(_STEPS.__getitem__, brackets))) > MAX_DEPTH:
        raise ProtocolViolation("a frame nested too deeply")


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number beyond the largest double")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)

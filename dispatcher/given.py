"""Check arguments that arrive as a dict, as strictly as text (C10): exact builtin types, copied, never mutated."""

import math
import re
from typing import Any

from dispatcher.faults import Fault, Problem, Reject
from dispatcher.invalid_json import MAX_DEPTH, MAX_DIGITS, invalid_json
from dispatcher.schema.pointer import join

_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_BITS = 1330  # an integer of 400 digits has at most this many


def check_given(value: dict[Any, Any], limit_bytes: int) -> dict[str, Any]:
    """Return a deep copy of `value` with integral floats as ints; raise `Reject`."""
    copy = _Copy(limit_bytes)
    copied = copy.copy(value, "", 1)
    for reason in ("size", "depth", "number_size", "non_finite", "surrogate"):
        if reason in copy.notes:
            raise invalid_json(reason)
    if copy.problems:
        raise Reject(Fault(code="invalid_args", problems=tuple(copy.problems)))
    result: dict[str, Any] = copied
    return result


class _Copy:
    def __init__(self, limit_bytes: int) -> None:
        self._left = limit_bytes
        self.notes: set[str] = set()
        self.problems: list[Problem] = []

    def copy(self, value: Any, path: str, depth: int) -> Any:
        kind = type(value)
        if kind in (dict, list) and depth > MAX_DEPTH:
            self.notes.add("depth")
            raise invalid_json("depth")
        if kind is dict:
            return self._copy_map(value, path, depth)
        if kind is list:
            self._spend(2 + len(value))
            return [self.copy(item, f"{path}/{index}", depth + 1) for index, item in enumerate(value)]
        return self._copy_scalar(value, kind, path)

    def _copy_map(self, value: dict[Any, Any], path: str, depth: int) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        self._spend(2)
        for key, item in value.items():
            if type(key) is not str:
                self._problem(path, "Keys should be strings", "string", key)
                continue
            self._copy_scalar(key, str, path)
            copied[key] = self.copy(item, join(path, key), depth + 1)
        return copied

    def _copy_scalar(self, value: Any, kind: type, path: str) -> Any:
        if kind is str:
            self._spend(len(value) + 3 if value.isascii() else len(value.encode("utf-8", "surrogatepass")) + 3)
            if not value.isascii() and _SURROGATE.search(value):
                self.notes.add("surrogate")
            return value
        self._spend(2)
        if kind is float:
            return self._copy_float(value)
        if kind is int and value.bit_length() > _MAX_BITS - 2 and abs(value) >= 10**MAX_DIGITS:
            self.notes.add("number_size")
            return 0
        if kind is int or kind is bool or value is None:
            return value
        self._problem(path, "Input should be a JSON value", "string, number, boolean, null, array or object", value)
        return None

    def _copy_float(self, value: float) -> int | float:
        if not math.isfinite(value):
            self.notes.add("non_finite")
            return 0
        if value == 0 and math.copysign(1, value) < 0:
            return value
        return int(value) if value.is_integer() else value

    def _problem(self, path: str, message: str, expected: str, got: Any) -> None:
        self.problems.append(Problem(path=path, keyword="type", message=message, expected=expected, got=got))

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise invalid_json("size")

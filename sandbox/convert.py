"""Turn what a handler returned into JSON, in the worker and under its deadline (C30). Standard library only.

Builtin subclasses are read by the base type's own methods, so that an overridden one never runs. Shared parts count
each time they would be written: a small graph that expands without end meets the byte budget, not the memory.
"""

import json
import math
import sys
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 128
MAX_DIGITS = 4300
_MAX_BITS = 14_290  # above any integer of 4,300 digits; the exact test follows


class Unconvertible(Exception):
    """Say where a result is not JSON (`path`, a JSON Pointer) and what to do (`hint`)."""

    def __init__(self, path: str, hint: str) -> None:
        super().__init__(f"{path}: {hint}")
        self.path = path
        self.hint = hint


class TooLarge(Exception):
    """Say that a result is over its byte limit."""


def encode_result(value: Any, limit_bytes: int) -> bytes:
    """Return `value` as compact UTF-8 JSON of at most `limit_bytes`; raise `Unconvertible` or `TooLarge`."""
    if type(value) is str and len(value) > limit_bytes:
        raise TooLarge(f"the result is over {limit_bytes} bytes")
    plain = _Walk(limit_bytes).convert(value, 1)
    try:
        body = _ENCODER.encode(plain).encode("utf-8")
    except UnicodeEncodeError:
        raise Unconvertible(_find_surrogate(plain, ""), "a lone surrogate is not text; encode or drop it") from None
    if len(body) > limit_bytes:
        raise TooLarge(f"the result is over {limit_bytes} bytes")
    return body


_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"))


def join(path: str, segment: object) -> str:
    """Return the JSON Pointer of a child (RFC 6901)."""
    return f"{path}/{str(segment).replace('~', '~0').replace('/', '~1')}"


class _Walk:
    """Convert one result; counts at least one byte for every value, two for every container.

    A path is put together only when something is refused: each container adds its own segment as the refusal passes.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.left = limit_bytes
        self.open: set[int] = set()

    def convert(self, value: Any, depth: int) -> Any:
        """Return the JSON-able form of `value`."""
        kind = type(value)
        if kind is str or kind is int or kind is bool or value is None or kind is float:
            return self._scalar(value, kind)
        self._spend(2)
        if depth > MAX_DEPTH:
            raise Unconvertible("", f"the result nests deeper than {MAX_DEPTH} levels")
        if kind is list or kind is tuple or kind is dict:
            return self._container(value, kind is dict, depth)
        return self._other(value, depth)

    def _scalar(self, value: Any, kind: type) -> Any:
        self._spend(len(value) + 2 if kind is str else 1)
        if kind is float and not math.isfinite(value):
            raise Unconvertible("", "NaN and infinities are not JSON; use null or a string")
        if kind is int and value.bit_length() > _MAX_BITS - 20:
            self._check_digits(value)
        return value

    def _check_digits(self, value: int) -> None:
        if value.bit_length() > _MAX_BITS or abs(value) >= 10**MAX_DIGITS:
            raise Unconvertible("", f"an integer of more than {MAX_DIGITS} digits; return it as a string")
        self._spend(MAX_DIGITS)

    def _spend(self, size: int) -> None:
        self.left -= size
        if self.left < -1024:  # a little slack: brackets are counted roughly, the exact size is checked at the end
            raise TooLarge("the result is over its byte limit")

    def _container(self, value: Any, is_map: bool, depth: int) -> Any:
        if id(value) in self.open:
            raise Unconvertible("", "the result contains itself")
        self.open.add(id(value))
        try:
            return self._map(value, depth) if is_map else self._items(_iterate(value), depth)
        finally:
            self.open.discard(id(value))

    def _items(self, items: Iterator[Any], depth: int) -> list[Any]:
        converted: list[Any] = []
        for item in items:
            try:
                converted.append(self.convert(item, depth + 1))
            except Unconvertible as refusal:
                raise Unconvertible(join("", len(converted)) + refusal.path, refusal.hint) from None
        return converted

    def _map(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        for key, item in dict.items(value):
            if not isinstance(key, str):
                raise Unconvertible("", f"a key is {_name(key)}, not a string")
            name = str.__str__(key)
            self._spend(len(name) + 3)
            try:
                converted[name] = self.convert(item, depth + 1)
            except Unconvertible as refusal:
                raise Unconvertible(join("", name) + refusal.path, refusal.hint) from None
        return converted

    def _other(self, value: Any, depth: int) -> Any:
        base = _builtin(value)
        if base is not None:
            return self.convert(base, depth)
        converted = _known(value)
        if converted is not _UNKNOWN:
            return self.convert(converted, depth)
        if hasattr(type(value), "__next__"):
            return self._items(iter(value), depth)
        raise Unconvertible("", _advice(value))


_UNKNOWN = object()


def _iterate(value: Any) -> Iterator[Any]:
    return list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)


def _builtin(value: Any) -> Any:
    """Read a builtin's subclass by the base type's own methods; an Enum member gives its value."""
    enum = sys.modules.get("enum")
    if enum is not None and isinstance(value, enum.Enum):
        return value._value_
    if type(value).__module__.partition(".")[0] == "numpy":
        return None
    for base, read in _BASES:
        if isinstance(value, base):
            return read(value)
    return None


_BASES: tuple[tuple[type, Any], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (dict, lambda value: dict(dict.items(value))),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: list(tuple.__iter__(value))),
)


def _known(value: Any) -> Any:
    """Return the JSON-able form of the types that contract rule C30 names, without importing any of them."""
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__ if hasattr(value, name)}
    if hasattr(kind, "__pydantic_fields__") or hasattr(kind, "__pydantic_root_model__"):
        return value.model_dump(mode="python")
    for module, names, read in _BY_MODULE:
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names)):
            return read(value)
    return _UNKNOWN


def _duration(value: Any) -> str:
    """Return a timedelta as an ISO 8601 duration, as pydantic writes it."""
    total = value.days * 86_400_000_000 + value.seconds * 1_000_000 + value.microseconds
    sign, total = ("-", -total) if total < 0 else ("", total)
    seconds, micro = divmod(total, 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    clock = "".join(f"{n}{unit}" for n, unit in ((seconds // 3600, "H"), (seconds // 60 % 60, "M")) if n)
    second = f"{seconds % 60}" + (f".{micro:06d}".rstrip("0") if micro else "")
    clock += f"{second}S" if second != "0" else ""
    return f"{sign}P" + (f"{days}D" if days else "") + (f"T{clock}" if clock else "" if days else "T0S")


def _decimal(value: Any) -> str:
    if not value.is_finite():
        raise Unconvertible("", "a Decimal that is not finite is not JSON")
    return str(value)


_BY_MODULE: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    ("datetime", ("date", "time"), lambda value: value.isoformat()),
    ("datetime", ("timedelta",), _duration),
    ("decimal", ("Decimal",), _decimal),
    ("uuid", ("UUID",), str),
    ("pathlib", ("PurePath",), str),
)


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"[:100].removeprefix("builtins.")


def _advice(value: Any) -> str:
    name = _name(value)
    if name.startswith("numpy."):
        return f"{name} is not JSON; call .item() on a scalar or .tolist() on an array"
    if isinstance(value, set | frozenset):
        return f"{name} has no order; return a list, sorted(...) for instance"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{name} is not text; decode it or encode it as base64"
    return f"{name} is not JSON; return dicts, lists, strings, numbers, booleans or None"


def _find_surrogate(value: Any, path: str) -> str:
    if isinstance(value, str):
        return path
    children = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, child in children:
        text = json.dumps([key, child], ensure_ascii=False)
        if any("\ud800" <= character <= "\udfff" for character in text):
            return path if isinstance(key, str) and _is_broken(key) else _find_surrogate(child, join(path, key))
    return path


def _is_broken(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)

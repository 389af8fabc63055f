"""Whatever text a model sends, a check answers, at once and without an exception (C17, C19)."""

import collections
import datetime
import decimal
import fractions
import ipaddress
import json
import os
import pathlib
import time
import uuid
import zoneinfo
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import pydantic
import pytest
from annotated_types import Ge, Gt, Interval, Len, MultipleOf
from pydantic import (
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    Base64UrlStr,
    ByteSize,
    Field,
    IPvAnyNetwork,
    PastDate,
    PostgresDsn,
    SecretStr,
    StringConstraints,
)

from dispatcher import Registry

TYPES = [
    int, float, str, bool, bytes, datetime.date, datetime.time, datetime.datetime, datetime.timedelta,
    decimal.Decimal, uuid.UUID, pathlib.Path, os.PathLike, zoneinfo.ZoneInfo, AnyUrl, PostgresDsn,
    ByteSize, SecretStr, Base64Bytes, Base64UrlStr, PastDate, AwareDatetime, IPvAnyNetwork,
    ipaddress.IPv4Address, ipaddress.IPv6Network, ipaddress.IPv4Interface,
    Annotated[decimal.Decimal, MultipleOf(3)], Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)],
    Annotated[float, MultipleOf(0.1)], Annotated[int, Interval(gt=1, lt=3)], Annotated[str, Len(2)],
    Annotated[datetime.timedelta, Gt(datetime.timedelta(1))],
    Annotated[datetime.datetime, Ge(datetime.datetime(2020, 1, 1))],
    Annotated[str, StringConstraints(strip_whitespace=True, to_upper=True, max_length=5)],
    Annotated[str, StringConstraints(pattern=r"^(a+)+$")],
    dict[int, int], dict[bool, int], dict[datetime.date, int], dict[uuid.UUID, int],
    collections.OrderedDict[str, int], collections.Counter[str], collections.deque[int], Sequence[int],
    Mapping[str, int], set[Any], frozenset[float], tuple[int, str], Annotated[list[int], Len(1, 3)], Literal["a"], Any,
]  # fmt: skip
# Before, they were read in Python, with a power that the text chose: such a parameter is refused.
FRACTIONS = tuple(map(int, pydantic.VERSION.split(".")[:2])) >= (2, 14)
if FRACTIONS:
    TYPES.append(fractions.Fraction)
TEXTS = (
    "1e999999999 -1e999999999 1e-999999999 NaN Infinity -inf 1/0 1/99999999999999999999 P99999999999999D P1e9D -P1D "
    "9999-12-31T23:59:59.999999999+23:59 2020-01-01T00:00:00-99:99 0000-00-00 1e400TB 99999999999999999999999999999TB "
    "../../etc/passwd /etc/passwd Europe/Berlin http://[::1 http://a:999999 http://xn--a postgres://a,b ://x 1.2.3.4/0 "
    "::/129 1j nan+infj (a+)+$ * [ {} [] null 00000000-0000-0000-0000-000000000000 \u0663 \u00b2"
).split()
LONG = ["", "\0", "\U0001f600" * 100, "a" * 60_000, " " * 60_000, "=" * 4_000, "9" * 5_000, "." * 5_000, "1_" * 2_000,
        "<" * 20_000, "a@" + "b." * 10_000]  # fmt: skip
PLAIN = ["0", "-0.0", "1e308", "1e400", "9" * 400, "-" + "9" * 390, "1.5", "true", "null", "[]", "{}", "[[]]", "[1,[1]]",
         "[{}]", "253402300800", "1e20", "-1e20", "1e-320"]  # fmt: skip
VALUES = [
    *(json.dumps(text) for text in (*TEXTS, *LONG)),
    *PLAIN,
    *(json.dumps({text: 1}) for text in (*TEXTS, *LONG)),
]


def annotated(annotation):
    """Return a function whose parameter has that annotation."""

    def handler(x):
        return None

    handler.__annotations__["x"] = annotation
    return handler


@pytest.mark.parametrize("annotation", TYPES, ids=str)
def test_typed(annotation):
    """A typed tool answers every text with a value or with problems at or under the parameter."""

    registry = Registry()
    registry.tool(name="t")(annotated(annotation))
    began = time.monotonic()
    for value in VALUES:
        checked = registry.validate("t", f'{{"x":{value}}}')
        paths = [error.path for error in checked.errors]
        assert checked.ok or checked.code == "invalid_json" or paths == [""] or all(p.startswith("/x") for p in paths), value
    assert time.monotonic() - began < 20


if not FRACTIONS:

    def test_a_fraction_read_in_python_is_refused():
        """An older pydantic would raise ten to a power that the model chose: it may not in the host."""
        registry = Registry()
        with pytest.raises(ValueError, match='validate_in="worker"'):
            registry.tool(annotated(fractions.Fraction))


@pytest.mark.parametrize("dialect", ["core", "2020-12"])
@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean", "array", "object", "null"])
def test_raw(dialect, kind):
    """So does a raw one, also for keys that only look like an index or a pointer."""
    inner = {"type": "object", "properties": {"0": {"type": "integer"}}, "additionalProperties": False}
    node = {"type": kind, "items": inner} if kind == "array" else {**inner, "type": kind}
    registry = Registry()
    registry.register(
        "t",
        {"type": "object", "properties": {"x": node}, "required": ["x"], "additionalProperties": False},
        lambda **arguments: None,
        dialect=dialect,
    )
    keys = json.dumps({text: {"~": 1, "/": [], "": text} for text in (*TEXTS, "", "0", "00", "-1", "a/b", "~1")})
    for value in [*VALUES, keys, f"[{keys},1]"]:
        checked = registry.validate("t", f'{{"x":{value}}}')
        assert checked.ok or checked.code in ("invalid_json", "invalid_args")
    assert not registry.validate("t", keys).ok

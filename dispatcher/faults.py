"""Errors as data: what a stage found wrong, until the last step renders it.

Exception
└── Reject   raised by stages only, caught in one place (pipeline.py); carries one Fault
"""

from dataclasses import dataclass
from typing import Any, Final


class _Missing:
    """Tell "no value" from null."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Name one wrong place in the arguments (C16): pointer, keyword, words in pydantic's style, what was expected.

    `got` is the offending value itself, unbounded and unredacted: only rendering may show it (C25).
    """

    path: str
    keyword: str
    message: str
    expected: Any = None
    got: Any = MISSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Hold everything that an error observation may say; rendering decides what fits.

    `code` and `reason` come from the closed lists in `codes.py`. `hint` is our own short text for the model, or the
    tool's. `next` overrides the code table's. `exposed` is a one-line exception text, set only with
    `expose_exceptions`. `detail` is for the record alone.
    """

    code: str
    reason: str | None = None
    hint: str = ""
    next: str | None = None
    problems: tuple[Problem, ...] = ()
    path: str | None = None
    got: Any = MISSING
    retry_after: float | None = None
    required_permission: str | None = None
    exposed: str = ""
    detail: str = ""


class Reject(Exception):
    """Stop the pipeline with a fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.code)
        self.fault = fault

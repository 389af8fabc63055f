"""A call as the caller writes it down for a batch."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """Hold one call of a batch: the tool's name, its arguments as text, bytes or dict, and the model's call id."""

    tool: str
    arguments: Any = "{}"
    call_id: str | None = None


def as_call(item: object) -> Call:
    """Return `item`, a `Call` or a pair, as a `Call`; TypeError for anything else."""
    if isinstance(item, Call):
        return item
    if isinstance(item, tuple | list) and len(item) == 2:
        return Call(item[0], item[1])
    raise TypeError(f"a batch takes Call(...) or (tool, arguments) pairs, not {type(item).__name__}")

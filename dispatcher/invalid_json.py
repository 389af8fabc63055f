"""Why a text is not one JSON value that a call may send: the reasons, their bounds and their fixed phrases (C7)."""

from dispatcher.faults import Fault, Reject

MAX_DEPTH = 64
MAX_DIGITS = 400
DEFAULT_BYTES = 65_536

PHRASES = {
    "size": "Arguments are too large",
    "depth": "Nested too deeply",
    "syntax": "Invalid syntax",
    "trailing_data": "Extra data after the value",
    "number_size": "A number has too many digits",
    "non_finite": "A number is not finite",
    "surrogate": "A string contains a lone surrogate",
    "duplicate_key": "Duplicate key in an object",
}


def invalid_json(reason: str, phrase: str = "") -> Reject:
    """Return the rejection for `reason`, with its fixed phrase."""
    return Reject(Fault(code="invalid_json", reason=reason, hint=phrase or PHRASES[reason]))

"""Correlation ids: `c-` and 16 base32 characters, minted in the host only (C26)."""

import base64
import os


def new_correlation_id() -> str:
    """Return a new id: 80 random bits from the kernel, so that a fork copies no generator's state."""
    return "c-" + base64.b32encode(os.urandom(10)).decode("ascii").lower()

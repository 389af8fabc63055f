"""Errors that the sandbox raises at its host.

    Exception
    └── SandboxError
        ├── SandboxUnavailable   the host cannot give the isolation that was asked for; .report says what is missing
        ├── SandboxClosed        a call after close()
        └── HandlerUnusable      a function cannot travel to a worker (also a ValueError); names the object and remedy

What happens *inside* a worker is never an exception here: it is an `Outcome` with a verdict.
"""


class SandboxError(Exception):
    """Stand at the top of what the sandbox raises."""


class SandboxUnavailable(SandboxError):
    """Say that this host cannot confine as asked; `report` holds the lines that `dispatcher doctor` would print."""

    def __init__(self, message: str, report: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.report = report


class SandboxClosed(SandboxError):
    """Say that the sandbox was closed before the call."""


class HandlerUnusable(SandboxError, ValueError):
    """Say that a function cannot be carried to a worker, which object is in the way and what to do."""

"""How the command line talks: results on stdout, one line for a person on stderr, an exit code."""

import sys

OK, FAILED, USAGE, NO_SANDBOX, BUG, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 3, 70, 130, 141


class UsageProblem(Exception):
    """Say in one line what was wrong with how a command was called."""


class PipeClosed(Exception):
    """Say that nobody reads our results any more. Not an OSError: click would end the process with 1 for that."""


def say(text: str) -> None:
    """Write one line of results; raises `PipeClosed`."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise PipeClosed from None


def complain(text: str) -> None:
    """Write one line for a person."""
    sys.stderr.write(" ".join(f"dispatcher: {text}".split()) + "\n")
